"""torch.save and torch.load: files that PyTorch wrote, round trips, and what is refused."""

from __future__ import annotations

import base64
import io
import pickle
import pickletools
import re
import zipfile
import zlib
from collections import OrderedDict

import pytest

import mindtorch_v2 as torch

# Written by PyTorch 2.13: a dict with everything common in it, a file of the old format, a model with its optimizer.
_ZIP = (
    "c-o~_%WoS+7#}}lwjqxKO`4WaC=Ulx$8S4L8i#FJ9$Tor6_VwPwY4YSRn}gA_Be$|NRf~Oy_J6eap7<14MqJADnZ17TMva32QEll"
    "n3;9losAqrGWP6hyz_g^H}ieoq8bPy6p5f?Z3dl3dZ%WXJ9wq86Ft`6wiI~^RfM+Z{|ZpF9HxN#*lZXCd^KWISghJ3rqz|I9el56"
    "TJ<Wyt*+gv?j$AfN2BElis;grdILkifk=vF>*TKUqXfaSkIsohs2rg8TDu2fHB4Zlq#`w-`u8EC`qaQayzrn_vn>nPh-tUF(w$Bn"
    "cX0idStAliOB$RbFsZ?dWx7s8bkl+<gBmabM$iZuoN~IP233C_W>jAvW*-;~b)LXW8obO=hHh=aD-LR4Rpwq3*`eDD+-(BpD5amk"
    "Jab7YFEYvnhw>7E%No4ODVutC8x}=M+qQ;uuW`C0Tyf}LAJDzQ=&m|+ZxVP*gSX2e79G3SBJhsDciV0?hI~=Zmx3kA=Ogeg<y%^E"
    "c-|whtid&It4nYjVrqa7T6z=13XgsZ6Nq!AuA#RvBnBFH&0R{KRQ+rtQhi8kkm1;EvsH)eVAhrsD+zM^pw#h>S;LSYJavW=tPc12"
    "dLPy_Sm&18aAU-QYU>?pkl>C48%I0JA!#T$QQI6u?R^$C*;(yP0=G2y;9EXWzJU)l_=ux+;bS3uH|=KI!e5AI@)JHa1F93o+f0CR"
    "f66YOIRbYG6g4RIVnuZ#a`5QF@0aMZSTBxDwK;TUm};>tyVKN3bq9C4^gJu_WlzS5Ex}YC{rTJ1%oppURTfb0xym5*s=8%1T20&{"
    "ikv!8Xhh4VnSsK6_`^>n{3jZiMTMb(dtVZ4vrJXwwbSSxHOnN#!puYe#?y=JbcIj!FoiaRs<skW<m+cJ;IQr$=w*|BY2Ty$hfU^a"
    "?%}iV=IMj^F^-l+M+rra{%1!A1$4l)CQ6m3EboG2v^GVpq$01MCHxg1V(LF#eOw;D|5Hd7)l-VRaVGUjWn#e1T(l3L*-SPv#>Kkm"
    "BCW`Ibo%{gd%ss;`VULtUrwQ)IlDgM=WXZ5LTtSLG+G<#4~tChv<6ZVQ-1P&<MZ+Rzlf603lLv=7k5lrfp&HF*IhO1iX8i&MiR+v"
    "K9kL*R<o<wH2oyAi9|e|p`&~%70<`B@k~0I&!w2l$NPt^DD@HLE`7}G(5Jgl&m42^eGl@Y-353~KyC-nsM78waTn1Af#ivs<XGkQ"
    "^0*7(tiYoM(eVQ8g}bZPlmI^rB2Vq~V%=3p#2O(FHsQs(Ylw*b*^5njvF^+lv0B)JO?k2ItQE1pda-FQ)}3)8mc8GKS?<NUb7or9"
    "bzw)G757nI6c-#pW0I_>hQrH8DH*snL{56{|M;Ez-;tvd8|KyauXE1WdD{qu9n2)3@67!d{;tjU"
)

_LEGACY = (
    "c-nPPO;5rw7~Z-eT1D~e;LYQ_5Fr!BNe+ff;|F-@#Vj})R@1D!U5C+xgbPIc4gLWCnm@tBgB`@^0h{J+`t*IDk514l7GH1e&*O*p"
    "o1@AEU4A&Gj=}P1*|Myml3GSmgd?U>E)%d#11*^s!L=4FWJ#a*5<o8$8&E$DS(x%?mVz?|*P{gkrm<8S3ItKd+<2m4jkwg!Ib<?`"
    "B5||qN7FXwBiNCaDvB#%rnyLQsMvkRML*OmNu>%$H4Mn}XfY=@oxK4AXE}n~LiY6S62#!rZPU~AgR@$r8u)cTsMevd@DUBO+{cxM"
    "Vux4+5j2B!bJ#Q3m`5hEV39V7Q+%!ZOtJn2k2D5+(uGY8TU{tE%#L6?HeO;U{-YI~`i*AIH(ERKQls1<HgTq~OYAA^&EuSAU&BEc"
    "4)g4HdG-}n?NywJRr1gKU6XTDT4uNY!@mIq*Lp_"
)

_TRAINING = (
    "c-pO2U2NM_6n4@!O~dFPqwNZmpB0wUEluJiZo9TAVNC!-*JX^ELS;G0P2%A+Ireq8PKq>XY*Pe6nn1wzfP};&54^#i5bqrlydlBM"
    "ctA)<6Y#(*_xg6J?W*fYxRPzjKHoXt`R={n^@`Zh$#H%^w`=rsgPfx0%jyQ2DkxY9)!xz4sa|f?F)n%Qzy+l)0;p6ANCQtkU)3~}"
    "$7*%m2%OXlNJoVeY90r`JCTKspyVU5=aE_}W9ZD|Dk%|?O{{80K-N*tRJDSP(YjI9<&9_nx`IKen;;Alsgw}-7$lI^stP{MUIw6B"
    "@{pJ?_@xf=%-2ll5xp1!r$kQlh~BI4kmwaXSK&aTOj$gPp*IVC5^0^wsfq#pWm2c?E3-Ti7%2CM9t?vP{t7%oZwDFnQ4B*_7&hxL"
    "BK449xq`4l1%gA?_fd(e2ana^af|o{(hZ^oJRy1v!^l}uRclzSz*rrgWYQT}!3dtJ!_z^LtHU!vi<yB@4Gue)MPZyVdzLVpm|%>a"
    "!*C=EOeS=pCMz2ym~g;&c)n~2GT9X5C==uuOA*2_m4&br*hwK901-!)7(`hXzL_P)vcy@I1O_1s)28UD!%VR3q#lP^M*X;r`W%M&"
    "EG(3rbQ6$dp^Mx4zd&y(26+*~i7YIYo!kUSGe~9|@)Eth%pk8|5VP>AX-Wr3Xid?Tid@pGX3c=t)?m2~Cxeoge9?4R$s}*xpyQ@B"
    "F*!1~2As+y|Jb7Ab|!iEpYMMfx;A+gver^VB**E@!qVmkcf#+_TKU=9mJ2AaY{KgzXU&UJF-p2pfHMt=?zM_?L9M745xmi`J{PMx"
    "Qu1XuyKGHCUa4VIS8^HxsUh`}HwCp=Bs*yxtJd2$8y3ByX`lkEE=xl+1m#If8Y;*R25&X29cOiIz}suE7NiOxQ!&lZirDS{<d-`~"
    "z9qfTYh_P680O}hb`T<TD+-pkmv%Ze?Q(?&9}&vn>$^W+rjtmoy%~&h!VZINJCGGkEv;9GF6k8C3W-FF5=fqh-{}JI-j~1tmuwQq"
    "ZDLfV=9W$!Z@GCgG!<hFQ4Uw;e?3Ge%6DH5z1)Jsm8Zh#)NC6BO2uN5=l@Pp2H(kl{YFdr_hB&SWDsd*{%_uxS){ca*AH(}&+FW$"
    "_M)?PG@Y7jNB&igyJYo#?%d~JwospMxBl&|t$BJ;4&!GBKWst&SUdVx2QSaki`KvOg|yT{{dha|+tfetf9Ox^f0g~y+d_Sz-TL>m"
    "udI3A+rNIF&4HTc+m`?E0b2cs&q`<Z_rEbNx?{jr`v%fg;=mUb`nM;mg>)+PAIXHLqlxK6Oc3~ZA{>hgf)FMn!V5y2pNS{p;lzv("
    "<!3CH9)I`8Opx#hS}Z-3Y?G(`5bNK?-2ETxM%xddVW;Aq++N3?JBj@e8FeJNZcno7<Z|b+9|QxAJcC`_?gPjTx4U?+1O9Or=Q=yw"
    "Si1{5u_HbgHsZ$Gcd!%tksBLzW9`o8#2)N+VR<*!?pjXlr*3TQ!8wokUD&uAYj+G+ziw>8jkWJ~SHC?jtl-Al_iCTBt_{1#8nths"
    "G3VL}aQkfT718HAdd~_vj@eAn`7}D%^P2#B5*+=-<tDcS*k4|kk70VPcozFF_LN~U"
)


def opened(text: str) -> io.BytesIO:
    return io.BytesIO(zlib.decompress(base64.b85decode(text)))


def again(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


def test_a_file_of_pytorch():
    loaded = torch.load(opened(_ZIP))
    assert loaded["weight"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert loaded["weight"].stride() == (1, 3)
    assert loaded["half"].dtype is torch.bfloat16
    assert loaded["half"].tolist() == [1.5, -2.0]
    assert loaded["mask"].tolist() == [True, False]
    assert loaded["count"].item() == 7
    assert loaded["z"].tolist() == [1 + 2j]
    assert (loaded["step"], loaded["name"], loaded["kind"]) == (3, "net", torch.float16)
    assert loaded["shape"] == torch.Size([2, 3])
    assert loaded["device"] == torch.device("cpu")
    assert isinstance(loaded["p"], torch.nn.Parameter)


def test_tensors_that_shared_memory_still_do():
    loaded = torch.load(opened(_ZIP))
    loaded["tail"][0] = 40.0
    assert loaded["weight"][1, 1].item() == 40.0


def test_the_old_format():
    loaded = torch.load(opened(_LEGACY))
    assert loaded["w"].tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert loaded["v"].tolist() == [1.0, 2.0, 3.0]


def test_a_model_and_its_optimizer_go_on():
    loaded = torch.load(opened(_TRAINING))
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
    assert isinstance(loaded["model"], OrderedDict)
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optim"])
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert optimizer.state[model.weight]["exp_avg"].flatten().tolist() == pytest.approx([0.1, 0.1])
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert model.weight.flatten().tolist() == pytest.approx([0.8, 1.8])


@pytest.mark.parametrize(
    "kind",
    [
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "bool",
        "complex64",
        "complex128",
    ],
)
def test_round_trip_of_every_dtype(kind):
    tensor = torch.tensor([0, 1, 1]).to(getattr(torch, kind))
    loaded = again(tensor)
    assert loaded.dtype is tensor.dtype
    assert loaded.tolist() == tensor.tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(()),
        lambda: torch.zeros(0, 3),
        lambda: torch.arange(6).view(2, 3).t(),
        lambda: torch.arange(6)[::2],
        lambda: torch.ones(2).expand(3, 2),
    ],
)
def test_round_trip_of_shapes_and_strides(make):
    tensor = make()
    loaded = again(tensor)
    assert (loaded.shape, loaded.stride()) == (tensor.shape, tensor.stride())
    assert loaded.tolist() == tensor.tolist()


def test_a_view_keeps_its_whole_storage():
    loaded = again(torch.arange(10.0)[2:4])
    assert loaded.untyped_storage().nbytes() == 40


def test_requires_grad_survives_and_history_does_not():
    loaded = again([torch.ones(1, requires_grad=True), torch.nn.Parameter(torch.ones(1), requires_grad=False)])
    assert [t.requires_grad for t in loaded] == [True, False]


class Foreign:
    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Foreign)


def test_only_known_classes_are_loaded_unless_told_otherwise():
    with pytest.raises(pickle.UnpicklingError, match="Foreign"):
        again(Foreign())
    assert again(Foreign(), weights_only=False) == Foreign()
    with torch.serialization.safe_globals([Foreign]):
        assert again(Foreign()) == Foreign()
    with pytest.raises(pickle.UnpicklingError, match="Foreign"):
        again(Foreign())


def test_whole_modules_need_no_more_names_than_in_torch():
    nn = torch.nn
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), 2)
    model = nn.Sequential(nn.Embedding(5, 4), encoder, nn.LayerNorm(4))
    x = torch.arange(4).view(2, 2)
    kinds = [
        nn.Sequential,
        nn.Embedding,
        nn.TransformerEncoder,
        nn.TransformerEncoderLayer,
        nn.ModuleList,
        nn.MultiheadAttention,
    ]
    kinds += [nn.modules.linear.NonDynamicallyQuantizableLinear, nn.Linear, nn.LayerNorm, nn.Dropout, nn.functional.relu]
    with torch.serialization.safe_globals(kinds):
        assert torch.equal(again(model)(x), model(x))
    lstm = nn.LSTM(2, 3)
    with torch.serialization.safe_globals([nn.LSTM]):
        assert torch.equal(again(lstm)(torch.ones(2, 2))[0], lstm(torch.ones(2, 2))[0])
    refused = re.escape("`torch.serialization.add_safe_globals([torch.nn.modules.rnn.LSTM])`")
    with pytest.raises(pickle.UnpicklingError, match=refused):
        again(lstm)


def test_map_location():
    assert again(torch.ones(2), map_location="meta").device.type == "meta"
    assert again(torch.ones(2), map_location=torch.device("cpu")).tolist() == [1.0, 1.0]
    assert again(torch.ones(2), map_location=lambda storage, place: storage).tolist() == [1.0, 1.0]


def test_files_paths_and_memory_maps(tmp_path):
    path = tmp_path / "net.pt"
    torch.save({"w": torch.arange(3)}, path)
    assert torch.load(str(path))["w"].tolist() == [0, 1, 2]
    assert torch.load(path, mmap=True)["w"].tolist() == [0, 1, 2]
    with zipfile.ZipFile(path) as archive:
        assert "net/data.pkl" in archive.namelist()
        assert archive.read("net/version") == b"3\n"
    with pytest.raises(ValueError, match="file path"):
        torch.load(io.BytesIO(path.read_bytes()), mmap=True)


def test_a_failed_save_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "net.pt"
    torch.save(1, path)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save(lambda: None, path)
    assert torch.load(path) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["net.pt"]


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04broken"])
def test_what_is_no_checkpoint_is_an_error(content):
    with pytest.raises((EOFError, RuntimeError, pickle.UnpicklingError)):
        torch.load(io.BytesIO(content))


def test_missing_places(tmp_path):
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")
    with pytest.raises(RuntimeError, match="Parent directory"):
        torch.save(1, tmp_path / "none" / "net.pt")


def test_the_old_format_can_be_written():
    buffer = io.BytesIO()
    torch.save({"w": torch.arange(3.0)}, buffer, _use_new_zipfile_serialization=False)
    assert not zipfile.is_zipfile(buffer)
    buffer.seek(0)
    assert torch.load(buffer)["w"].tolist() == [0.0, 1.0, 2.0]


# ---------------------------------------------------------------- functions and classes of whole models


def _named(value) -> set[str]:
    """The names of torch's that a checkpoint refers to."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    with zipfile.ZipFile(buffer) as archive:
        pickled = archive.read("archive/data.pkl")
    return {argument for step, argument, _ in pickletools.genops(pickled) if step.name == "GLOBAL" and argument[:5] == "torch"}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (lambda: torch.nn.functional.relu, "torch.nn.functional relu"),
        (lambda: torch.nn.functional.softmax, "torch.nn.functional softmax"),
        (lambda: torch.nn.functional.gelu, "torch._C._nn gelu"),
        (lambda: torch.nn.functional.logsigmoid, "torch._C._nn log_sigmoid"),
        (lambda: torch.tanh, "torch._C _VariableFunctionsClass"),
        (lambda: torch.nn.functional.conv2d, "torch._C _VariableFunctionsClass"),
        (lambda: torch.nn.MultiheadAttention, "torch.nn.modules.activation MultiheadAttention"),
        (lambda: torch.nn.GRUCell, "torch.nn.modules.rnn GRUCell"),
        (lambda: torch.optim.lr_scheduler.StepLR, "torch.optim.lr_scheduler StepLR"),
    ],
)
def test_functions_and_classes_have_torchs_names(value, name):
    assert _named(value()) == {name}
    buffer = io.BytesIO()
    torch.save([value(), value()], buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    assert loaded == [value()] * 2
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(buffer)


def test_a_whole_model_with_functions_in_it():
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, activation="gelu").eval()
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    again = torch.load(buffer, weights_only=False)
    x = torch.ones(1, 2, 4)
    assert again(x).equal(layer(x))
