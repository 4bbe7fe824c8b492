"""torch.nn.functional and nn.utils: forms, options and refusals; expected values and texts are torch 2.13's."""

from __future__ import annotations

import math
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn import functional as F
from mindtorch_v2.nn.utils import parametrizations, parametrize, prune, rnn, stateless


def outcome(call) -> str:
    """What `call` returns, or the type and message of what it raises."""
    try:
        return str(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def rounded(tensor) -> list:
    return [round(v, 4) for v in tensor.flatten().tolist()]


X = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.0, -0.5]])
Y = torch.tensor([[1.0, 0.0, 1.5], [-0.5, 0.5, 0.0]])
IMAGE = torch.arange(16.0).view(1, 1, 4, 4)
LABELS = torch.tensor([2, 0])

# ---------------------------------------------------------------- values

VALUES = [
    ("softmax over the implied dim", lambda: F.softmax(X), [0.1753, 0.0391, 0.7856, 0.736, 0.1642, 0.0996]),
    ("softmax with a dtype", lambda: F.softmax(torch.tensor([0, 1]), 0, dtype=torch.float64), [0.2689, 0.7311]),
    ("softmin", lambda: F.softmin(X, 1), [0.1753, 0.7856, 0.0391, 0.0777, 0.3482, 0.5741]),
    ("mse weighed", lambda: F.mse_loss(X, Y, weight=torch.tensor([[1.0, 2.0, 0.0], [1.0, 0.0, 1.0]])), [1.3]),
    ("l1 weighed, summed", lambda: F.l1_loss(X, Y, reduction="sum", weight=torch.ones(2, 3) * 2), [10.0]),
    ("huber weighed", lambda: F.huber_loss(X, Y, delta=0.5, weight=torch.ones(2, 3)), [0.2917]),
    ("smooth l1 without a bend", lambda: F.smooth_l1_loss(X, Y, beta=0.0), [0.8333]),
    ("cross entropy, old flags", lambda: F.cross_entropy(X, LABELS, size_average=False), [0.5478]),
    ("cross entropy, no reduce", lambda: F.cross_entropy(X, LABELS, reduce=False), [0.2413, 0.3065]),
    ("gaussian nll, one variance", lambda: F.gaussian_nll_loss(X, Y, 2.0), [0.5966]),
    ("gaussian nll, one per row", lambda: F.gaussian_nll_loss(X, Y, torch.tensor([1.0, 2.0]), full=True), [1.4047]),
    ("multilabel soft margin", lambda: F.multilabel_soft_margin_loss(X, (Y > 0).float()), [0.6305]),
    (
        "triplet, any distance",
        lambda: F.triplet_margin_with_distance_loss(
            X, Y, X / 2, distance_function=lambda a, b: (a - b).abs().sum(1), reduction="none"
        ),
        [1.25, 3.0],
    ),
    ("linear cross entropy", lambda: F.linear_cross_entropy(X, torch.eye(3), LABELS), [0.2739]),
    (
        "linear cross entropy, places",
        lambda: F.linear_cross_entropy(X, torch.arange(18.0).view(3, 2, 3) / 9, torch.tensor([[0, 1], [2, 2]])),
        [1.2413],
    ),
    ("normalize", lambda: F.normalize(X, p=1, dim=0), [0.25, -1.0, 0.8, 0.75, 0.0, -0.2]),
    (
        "local response norm",
        lambda: F.local_response_norm(X.view(1, 2, 3), 2, alpha=1.0, beta=1.0),
        [0.4444, -0.6667, 0.6667, 0.6667, 0.0, -0.16],
    ),
    ("layer norm", lambda: F.layer_norm(X, (3,)), [0.0, -1.2247, 1.2247, 1.3728, -0.3922, -0.9806]),
    ("group norm", lambda: F.group_norm(X.view(1, 2, 3), 1), [0.0788, -1.3398, 1.4974, 1.0245, -0.3941, -0.8669]),
    ("rms norm", lambda: F.rms_norm(X, (3,)), [0.378, -0.7559, 1.5119, 1.6432, 0.0, -0.5477]),
    ("embedding", lambda: F.embedding(torch.tensor([1, 0]), X), [1.5, 0.0, -0.5, 0.5, -1.0, 2.0]),
    (
        "embedding bag",
        lambda: F.embedding_bag(torch.tensor([0, 1, 1]), X, torch.tensor([0, 2]), mode="sum"),
        [2.0, -1.0, 1.5, 1.5, 0.0, -0.5],
    ),
    (
        "embedding bag, rows",
        lambda: F.embedding_bag(torch.tensor([[0, 1], [1, 1]]), X, mode="max"),
        [1.5, 0.0, 2.0, 1.5, 0.0, -0.5],
    ),
    ("interpolate, exact", lambda: F.interpolate(IMAGE, size=(2, 2), mode="nearest-exact"), [5.0, 7.0, 13.0, 15.0]),
    ("interpolate, area", lambda: F.interpolate(IMAGE, scale_factor=0.5, mode="area"), [2.5, 4.5, 10.5, 12.5]),
    (
        "interpolate, recomputed",
        lambda: F.interpolate(IMAGE, scale_factor=0.6, mode="bilinear", recompute_scale_factor=True),
        [2.5, 4.5, 10.5, 12.5],
    ),
    ("grid sample", lambda: F.grid_sample(IMAGE, torch.zeros(1, 1, 1, 2), align_corners=False), [7.5]),
    ("affine grid", lambda: F.affine_grid(torch.eye(3)[None, :2], (1, 1, 1, 2), align_corners=True), [-1.0, 0.0, 1.0, 0.0]),
    ("unfold and fold", lambda: F.fold(F.unfold(IMAGE, 2, stride=2), (4, 4), 2, stride=2), list(range(16))),
    ("pad", lambda: F.pad(X, (1, 0), value=9.0), [9.0, 0.5, -1.0, 2.0, 9.0, 1.5, 0.0, -0.5]),
    ("lp pool", lambda: F.lp_pool1d(X[None], 2, 2), [1.118, 1.5]),
    ("max pool with places", lambda: F.max_pool1d(X[None], 2, return_indices=True)[1], [0, 0]),
    ("unpool", lambda: F.max_unpool1d(torch.tensor([[[3.0]]]), torch.tensor([[[1]]]), 2), [0.0, 3.0]),
    ("adaptive max with places", lambda: F.adaptive_max_pool2d(IMAGE, (1, None), True)[1], [12, 13, 14, 15]),
    ("tanhshrink", lambda: F.tanhshrink(X), [0.0379, -0.2384, 1.036, 0.5949, 0.0, -0.0379]),
    ("softsign", lambda: F.softsign(X), [0.3333, -0.5, 0.6667, 0.6, 0.0, -0.3333]),
    ("glu", lambda: F.glu(X[:, :2]), [0.1345, 0.75]),
    ("prelu", lambda: F.prelu(X, torch.tensor([0.1, 0.2, 0.3])), [0.5, -0.2, 2.0, 1.5, 0.0, -0.15]),
    ("bilinear", lambda: F.bilinear(X, Y, torch.ones(1, 3, 3)), [3.75, 0.0]),
    ("pdist", lambda: F.pdist(X), [2.8723]),
    ("one hot", lambda: F.one_hot(torch.tensor([1, 0])), [0, 1, 1, 0]),
]


@pytest.mark.parametrize(("call", "expected"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_value(call, expected: list) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rounded(call()) == pytest.approx(expected, abs=1e-4)


# ---------------------------------------------------------------- refusals and warnings

SIZES = "torch.Size([2, 3])"
REFUSALS = [
    (
        lambda: F.binary_cross_entropy(X, Y[0]),
        f"ValueError: Using a target size (torch.Size([3])) that is different to the input size ({SIZES}) is deprecated. "
        "Please ensure they have the same size.",
    ),
    (
        lambda: F.binary_cross_entropy_with_logits(X, Y[0]),
        f"ValueError: Target size (torch.Size([3])) must be the same as input size ({SIZES})",
    ),
    (lambda: F.cross_entropy(X, LABELS, reduction="bad"), "ValueError: bad is not a valid value for reduction"),
    (lambda: F.mse_loss(X, Y, weight=torch.ones(3)), "ValueError: Weights and input must have the same size."),
    (
        lambda: F.margin_ranking_loss(X, Y, torch.ones(3)),
        "RuntimeError: margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
        f"{SIZES}, input2: {SIZES}, target: torch.Size([3]) ",
    ),
    (lambda: F.gaussian_nll_loss(X, Y, -Y.abs()), "ValueError: var has negative entry/entries"),
    (lambda: F.gaussian_nll_loss(X, Y, torch.ones(5)), "ValueError: var is of incorrect size"),
    (lambda: F.triplet_margin_loss(X, Y, X, margin=0), "ValueError: margin must be greater than 0, got 0"),
    (lambda: F.multi_margin_loss(X, LABELS, p=3), "ValueError: only p == 1 and p == 2 supported"),
    (lambda: F.glu(torch.tensor(1.0)), "RuntimeError: glu does not support scalars because halving size must be even"),
    (lambda: F.dropout(X, p=2.0), "ValueError: dropout probability has to be between 0 and 1, but got 2.0"),
    (lambda: F.embedding(LABELS, X, padding_idx=2), "AssertionError: Padding_idx must be within num_embeddings"),
    (lambda: F.embedding_bag(LABELS, X), "ValueError: offsets has to be a 1D Tensor but got None"),
    (lambda: F.embedding_bag(LABELS, X, LABELS, mode="min"), "ValueError: mode has to be one of sum, mean or max"),
    (
        lambda: F.embedding_bag(LABELS, X, LABELS, mode="max", sparse=True),
        "ValueError: max mode does not support sparse weights",
    ),
    (lambda: F.interpolate(IMAGE), "ValueError: either size or scale_factor should be defined"),
    (lambda: F.interpolate(IMAGE, size=2, scale_factor=2), "ValueError: only one of size or scale_factor should be defined"),
    (
        lambda: F.interpolate(IMAGE, size=2, align_corners=True),
        "ValueError: align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
        "trilinear",
    ),
    (
        lambda: F.interpolate(X[None], size=2, mode="bilinear"),
        "NotImplementedError: Got 3D input, but bilinear mode needs 4D input",
    ),
    (
        lambda: F.grid_sample(IMAGE, X, mode="odd"),
        "ValueError: nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'odd'",
    ),
    (
        lambda: F.affine_grid(torch.ones(1, 3, 3), (1, 1, 2, 2), False),
        "ValueError: Expected a batch of 2D affine matrices of shape Nx2x3 for size (1, 1, 2, 2). Got torch.Size([1, 3, 3]).",
    ),
    (lambda: F.group_norm(X[0], 1), "RuntimeError: Expected at least 2 dimensions for input tensor but received 1"),
    (
        lambda: F.instance_norm(torch.ones(1, 2, 1)),
        "ValueError: Expected more than 1 spatial element when training, got input size torch.Size([1, 2, 1])",
    ),
    (
        lambda: F.fractional_max_pool2d(IMAGE, 2),
        "ValueError: fractional_max_pool2d requires specifying either an output_size or an output_ratio",
    ),
    (lambda: F.hardtanh(X, 1, -1), "ValueError: min_val cannot be greater than max_val"),
    (
        lambda: F.multi_head_attention_forward(torch.ones(1), X, X, 3, 1, None, None, None, None, False, 0.0, X, None),
        "AssertionError: query should be unbatched 2D or batched 3D tensor but received 1-D query tensor",
    ),
]


@pytest.mark.parametrize(("call", "expected"), REFUSALS, ids=[expected[:60] for _, expected in REFUSALS])
def test_refusal(call, expected: str) -> None:
    assert outcome(call) == expected


WARNINGS = [
    (lambda: F.mse_loss(torch.ones(3, 1), torch.zeros(3)), "Using a target size .* that is different to the input"),
    (lambda: F.softmax(X), "Implicit dimension choice for softmax has been deprecated"),
    (lambda: F.kl_div(X, Y.abs()), "reduction: 'mean' divides the total loss by both the batch size and the support"),
    (lambda: F.cross_entropy(X, LABELS, size_average=True), "size_average and reduce args will be deprecated"),
    (lambda: F.grid_sample(IMAGE, torch.zeros(1, 1, 1, 2)), "Default grid_sample and affine_grid behavior has changed"),
    (lambda: F.dropout2d(torch.ones(2, 3)), "dropout2d: Received a 2-D input to dropout2d, which is deprecated"),
    (lambda: F.upsample(IMAGE, scale_factor=2), "upsample` is deprecated"),
]


@pytest.mark.parametrize(("call", "text"), WARNINGS, ids=[text[:40] for _, text in WARNINGS])
def test_warning(call, text: str) -> None:
    with pytest.warns(UserWarning, match=text):
        call()


# ---------------------------------------------------------------- more than a value


def test_ops_are_the_functions_themselves() -> None:
    assert F.linear(X, torch.ones(1, 3), torch.ones(1)).tolist() == [[2.5], [2.0]]
    assert F.relu_(X.clone()).tolist() == F.relu(X).tolist()
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        F.linear(X, torch.ones(3, 2))


def test_in_place_forms_write_into_their_input() -> None:
    for call in (
        lambda x: F.relu(x, inplace=True),
        lambda x: F.elu(x, inplace=True),
        lambda x: F.hardtanh(x, inplace=True),
        lambda x: F.silu(x, inplace=True),
        lambda x: F.leaky_relu(x, inplace=True),
        lambda x: F.threshold(x, 0.0, 1.0, inplace=True),
        lambda x: F.dropout(x, 0.5, inplace=True),
    ):
        x = X.clone()
        assert call(x) is x


def test_gumbel_softmax() -> None:
    torch.manual_seed(0)
    logits = X.clone().requires_grad_()
    hard = F.gumbel_softmax(logits, hard=True)
    assert sorted(hard.flatten().tolist()) == [0.0] * 4 + [1.0] * 2
    hard[0, 0].backward()
    assert logits.grad[0].abs().sum().item() > 0
    assert F.gumbel_softmax(logits, tau=0.5).sum(1).tolist() == pytest.approx([1.0, 1.0])


def test_max_norm_shortens_the_table_itself() -> None:
    table = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    F.embedding(torch.tensor([0]), table, max_norm=1.0)
    assert table.flatten().tolist() == pytest.approx([0.6, 0.8, 0.3, 0.4], rel=1e-5)


def test_attention_backends() -> None:
    from mindtorch_v2.backends import cuda
    from mindtorch_v2.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        assert (cuda.math_sdp_enabled(), cuda.flash_sdp_enabled()) == (True, False)
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
            assert cuda.flash_sdp_enabled()
        assert not cuda.flash_sdp_enabled()
    assert cuda.flash_sdp_enabled() and str(SDPBackend.MATH) == "SDPBackend.MATH"
    assert outcome(lambda: sdpa_kernel(3).__enter__()).startswith("AssertionError: Backend must be an instance of")


# ---------------------------------------------------------------- nn.utils


def gradients(*values: list[float]) -> list:
    made = [nn.Parameter(torch.zeros(len(value))) for value in values]
    for parameter, value in zip(made, values, strict=True):
        parameter.grad = torch.tensor(value)
    return made


@pytest.mark.parametrize("foreach", [None, False])
@pytest.mark.parametrize(("norm_type", "norm"), [(2.0, 5.0), (1.0, 7.0), (math.inf, 4.0)])
def test_clip_grad_norm(norm_type: float, norm: float, foreach: bool | None) -> None:
    a, b = gradients([3.0, 0.0], [4.0])
    assert nn.utils.clip_grad_norm_([a, b], 1.0, norm_type, foreach=foreach).item() == norm
    assert [*a.grad.tolist(), *b.grad.tolist()] == pytest.approx([3 / norm, 0.0, 4 / norm], rel=1e-5)


def test_clipping_edges() -> None:
    a, b = gradients([3.0, -5.0], [math.nan])
    nn.utils.clip_grad_value_([a], 4.0)
    assert a.grad.tolist() == [3.0, -4.0]
    assert nn.utils.clip_grad_norm_(a, 100.0).item() == 5.0 and a.grad.tolist() == [3.0, -4.0]
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0.0 and nn.utils.get_total_norm([a.grad]).item() == 5.0
    assert outcome(lambda: nn.utils.clip_grad_norm_([a, b], 1.0, error_if_nonfinite=True)).startswith(
        "RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite"
    )


def test_parameters_as_a_vector() -> None:
    m = nn.Linear(2, 1)
    nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), m.parameters())
    assert m.weight.tolist() == [[1.0, 2.0]] and type(m.weight) is nn.Parameter
    assert nn.utils.parameters_to_vector(m.parameters()).tolist() == [1.0, 2.0, 3.0]
    assert outcome(lambda: nn.utils.vector_to_parameters(3, m.parameters())) == (
        "TypeError: expected torch.Tensor, but got: int"
    )


def square(*options) -> nn.Linear:
    m = nn.Linear(2, 2, *options)
    m.weight.data.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    return m


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).t()

    def right_inverse(self, x):
        return x.triu()


class Halves(nn.Module):
    def forward(self, a, b):
        return a + b

    def right_inverse(self, x):
        return x / 2, x / 2


def test_parametrize() -> None:
    m = square()
    weight = m.weight
    parametrize.register_parametrization(m, "weight", Symmetric())
    assert m.weight.tolist() == [[1.0, 2.0], [2.0, 4.0]] and type(m).__name__ == "ParametrizedLinear"
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert m.parametrizations.weight.original is weight
    m(torch.ones(1, 2)).sum().backward()
    assert weight.grad.tolist() == [[1.0, 2.0], [0.0, 1.0]]
    m.weight = torch.full((2, 2), 5.0)
    assert m.weight.tolist() == [[5.0, 5.0], [5.0, 5.0]]
    with parametrize.cached():
        assert m.weight is m.weight
    assert m.weight is not m.weight
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear and m.weight is weight and list(m.state_dict()) == ["bias", "weight"]


def test_parametrize_by_several_tensors() -> None:
    m = square(False)
    parametrize.register_parametrization(m, "weight", Halves())
    assert list(m.state_dict()) == ["parametrizations.weight.original0", "parametrizations.weight.original1"]
    assert outcome(lambda: parametrize.remove_parametrizations(m, "weight", leave_parametrized=False)).startswith(
        "ValueError: Cannot leave unparametrized"
    )
    assert "does not have a parameter, a buffer, or a parametrized element with name 'zz'" in outcome(
        lambda: parametrize.register_parametrization(m, "zz", Halves())
    )


def test_weight_norm_old_and_new() -> None:
    new, old = square(False), square(False)
    parametrizations.weight_norm(new)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn.utils.weight_norm(old)
    for m, lengths in ((new, new.parametrizations.weight.original0), (old, old.weight_g)):
        assert lengths.flatten().tolist() == pytest.approx([math.sqrt(5), 5.0])
        lengths.data.mul_(2)
        assert rounded(m(torch.ones(1, 2))) == [6.0, 14.0]
    nn.utils.remove_weight_norm(old)
    assert list(old.state_dict()) == ["weight"] and rounded(old.weight) == [2.0, 4.0, 6.0, 8.0]


def test_spectral_norm_old_and_new() -> None:
    torch.manual_seed(0)
    largest = 5.46499
    for apply, names in (
        (nn.utils.spectral_norm, ["weight_orig", "weight_u", "weight_v"]),
        (
            parametrizations.spectral_norm,
            ["parametrizations.weight.0._u", "parametrizations.weight.0._v", "parametrizations.weight.original"],
        ),
    ):
        m = square(False)
        apply(m, n_power_iterations=20)
        m(torch.ones(1, 2))
        assert sorted(m.state_dict()) == names
        assert rounded(m.weight * largest) == pytest.approx([1.0, 2.0, 3.0, 4.0], abs=1e-3)


@pytest.mark.parametrize("name", ["matrix_exp", "cayley"])
def test_orthogonal(name: str) -> None:
    torch.manual_seed(0)
    m = nn.Linear(3, 3)
    parametrizations.orthogonal(m, orthogonal_map=name)
    assert torch.allclose(m.weight @ m.weight.t(), torch.eye(3), atol=1e-5)
    wanted = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    m.weight = wanted
    assert torch.allclose(m.weight, wanted, atol=1e-6)


def test_prune() -> None:
    m = square(False)
    prune.l1_unstructured(m, "weight", 1)
    prune.l1_unstructured(m, "weight", 1)
    assert m.weight.tolist() == [[0.0, 0.0], [3.0, 4.0]] and prune.is_pruned(m) and len(m._forward_pre_hooks) == 1
    m(torch.ones(1, 2)).sum().backward()
    assert m.weight_orig.grad.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    prune.remove(m, "weight")
    assert list(m.state_dict()) == ["weight"] and not prune.is_pruned(m)
    s, t = square(), square()
    prune.ln_structured(s, "weight", 1, n=2, dim=0)
    assert s.weight.tolist() == [[0.0, 0.0], [3.0, 4.0]]
    prune.global_unstructured([(t, "weight"), (m, "weight")], prune.L1Unstructured, amount=4)
    assert t.weight.tolist() == [[0.0, 0.0], [3.0, 4.0]]
    assert outcome(lambda: prune.l1_unstructured(square(), "weight", 9)) == (
        "ValueError: amount=9 should be smaller than the number of parameters to prune=4"
    )


def test_functional_call() -> None:
    call = stateless._functional_call
    m, x = nn.Sequential(nn.Linear(2, 1)), torch.ones(1, 2)
    own, other, zero = m[0].weight, torch.ones(1, 2, requires_grad=True), torch.zeros(1)
    call(m, {"0.weight": other, "0.bias": zero}, x).sum().backward()
    assert other.grad.tolist() == [[1.0, 1.0]] and m[0].weight is own and own.grad is None
    assert outcome(lambda: call(m, {"0.weight": other}, x, strict=True)) == (
        "RuntimeError: Error(s) in reparametrizing for Sequential:\n\tMissing key(s): '0.bias'."
    )
    assert outcome(lambda: call(m, {"9.x": other}, x)) == "AttributeError: Sequential has no attribute `9`"
    assert outcome(lambda: call(m, {"0.weight": 3}, x)) == "TypeError: 3 is not an instance of torch.Tensor"
    tied = nn.ModuleDict({"a": m, "b": m})
    tied.forward = lambda x: m(x)
    assert call(tied, {"b.0.weight": other, "a.0.bias": zero}, x).item() == 2.0
    assert "which are tied" in outcome(lambda: call(tied, {"a.0.weight": other, "b.0.weight": zero}, x))


def test_packing() -> None:
    x = torch.arange(12.0).view(3, 4, 1)
    packed = rnn.pack_padded_sequence(x, torch.tensor([1, 4, 2]), batch_first=True, enforce_sorted=False)
    assert packed.data.flatten().tolist() == [4.0, 8.0, 0.0, 5.0, 9.0, 6.0, 7.0]
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1] and packed.sorted_indices.tolist() == [1, 2, 0]
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0)
    assert padded[0].flatten().tolist() == [0.0, -1.0, -1.0, -1.0] and lengths.tolist() == [1, 4, 2]
    assert packed.double().data.dtype == torch.float64
    assert "total_length=2 and max sequence length being 4" in outcome(lambda: rnn.pad_packed_sequence(packed, total_length=2))
    with pytest.raises(RuntimeError, match="`lengths` array must be sorted in decreasing order"):
        rnn.pack_padded_sequence(x, [1, 4, 2], batch_first=True)


def test_fusion_and_skip_init() -> None:
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(1, 2, 2).eval(), nn.BatchNorm2d(2).eval()
    norm.running_mean.copy_(torch.tensor([0.5, -0.5]))
    norm.running_var.copy_(torch.tensor([2.0, 3.0]))
    assert torch.allclose(nn.utils.fuse_conv_bn_eval(conv, norm)(IMAGE), norm(conv(IMAGE)), atol=1e-5)
    assert outcome(lambda: nn.utils.fuse_conv_bn_eval(conv.train(), norm)) == "AssertionError: Fusion only for eval!"
    assert outcome(lambda: nn.utils.skip_init(nn.ReLU)) == (
        "RuntimeError: Module must support a 'device' arg to skip initialization"
    )
