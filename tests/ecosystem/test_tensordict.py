"""tensordict: dictionaries of tensors with a batch size, modules on them, files of memory that is mapped."""

import torch
from tensordict import LazyStackedTensorDict, MemoryMappedTensor, TensorDict, TensorDictParams, tensorclass
from tensordict.nn import (
    NormalParamExtractor,
    ProbabilisticTensorDictModule,
    TensorDictModule,
    TensorDictSequential,
)
from torch import nn
from weights import fill, normal


def dictionary():
    return TensorDict({"a": normal("a", 2, 3), "b": {"c": normal("c", 2, 3, 4)}}, batch_size=[2])


def test_operations(figures):
    td = dictionary()
    figures.check("text", repr(td))
    figures.check("row", td[0].to_dict())
    figures.check("masked", td[torch.tensor([True, False])].to_dict())
    figures.check("computed", ((td + 1) * td).apply(torch.tanh).to_dict())
    figures.check("mean", td.mean().to_dict())
    figures.check("where", td.where(torch.tensor([True, False]), td * 0).to_dict())
    figures.check("keys", sorted(td.flatten_keys(".").keys()))
    figures.check("equal", bool((td == td.clone()).all()))
    shapes = [td.expand(3, 2), td.unsqueeze(0).permute(1, 0), td.reshape(-1), *td.split(1), *td.unbind(0)]
    figures.check("shapes", [list(each.batch_size) for each in shapes])
    figures.check("changed", td.clone().set("d", torch.zeros(2)).exclude("b").to(torch.float64).to_dict())
    figures.check("leaves", len(torch.utils._pytree.tree_leaves(td)))


def test_stacks(figures):
    td = dictionary()
    figures.check("stacked", torch.stack([td, td * 2], 1).to_dict())
    figures.check("joined", torch.cat([td, td * 2], 0).to_dict())
    lazy = LazyStackedTensorDict.lazy_stack([td, td.exclude("b")], 0)
    figures.check("lazy", lazy["a"])
    figures.check("common keys", sorted(lazy.keys()))


def test_files(figures, tmp_path):
    td = dictionary()
    mapped = td.memmap(str(tmp_path / "mapped"))
    assert isinstance(mapped["a"], MemoryMappedTensor)
    figures.check("mapped", TensorDict.load_memmap(str(tmp_path / "mapped")).to_dict())
    like = td.memmap_like(str(tmp_path / "like"))
    like["a"].fill_(3)
    figures.check("like", TensorDict.load_memmap(str(tmp_path / "like"))["a"])
    torch.save(td, tmp_path / "td.pt")
    figures.check("saved", torch.load(tmp_path / "td.pt", weights_only=False).to_dict())
    state = td.clone().zero_()
    state.load_state_dict(td.state_dict())
    figures.check("state", state.to_dict())
    figures.check("part of a file", MemoryMappedTensor.from_tensor(torch.arange(5))[1:3])
    assert td.clone().share_memory_().is_shared()


def test_modules(figures):
    net = TensorDictSequential(
        TensorDictModule(fill(nn.Linear(3, 4)), ["a"], ["h"]),
        TensorDictModule(nn.Sequential(nn.Tanh(), fill(nn.Linear(4, 4)), NormalParamExtractor()), ["h"], ["loc", "scale"]),
        ProbabilisticTensorDictModule(["loc", "scale"], ["x"], distribution_class=torch.distributions.Normal),
    )
    torch.manual_seed(2)
    with torch.no_grad():
        figures.check("drawn", net(dictionary())["x"])
    out = net(dictionary())
    (out["loc"].sum() + out["scale"].sum()).backward()
    figures.check("gradient", net[0].module.weight.grad)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    optimizer.step()
    figures.check("parameters", TensorDict.from_module(net).data.flatten_keys(".").to_dict())
    assert len(list(TensorDictParams(TensorDict({"w": torch.ones(2)}, [])).parameters())) == 1


def test_functional_calls_and_vmap(figures):
    net = fill(nn.Linear(3, 4))
    weights = TensorDict.from_module(net)
    with (weights * 2).to_module(net):
        figures.check("doubled", net(torch.ones(2, 3)))
    figures.check("as before", net(torch.ones(2, 3)))
    several = torch.stack([weights.data, weights.data * 2, weights.data * 3])

    def call(parameters, x):
        with parameters.to_module(net):
            return net(x)

    figures.check("ensemble", torch.vmap(call, (0, None))(several, torch.ones(2, 3)))
    figures.check("mapped dictionary", torch.vmap(lambda td: td + 1)(dictionary()).to_dict())
    figures.check("mapped with a tensor", torch.vmap(lambda td, x: td["a"] * x)(dictionary(), torch.tensor([1.0, 2.0])))


@tensorclass
class Sample:
    x: torch.Tensor
    y: torch.Tensor


def test_classes_of_tensors(figures):
    samples = Sample(normal("x", 3, 2), normal("y", 3), batch_size=[3])
    figures.check("row", samples[1].x)
    figures.check("stacked", torch.stack([samples, samples]).y)
    figures.check("computed", (samples * 2).x)
