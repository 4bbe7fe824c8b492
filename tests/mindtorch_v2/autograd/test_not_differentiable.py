"""Arguments that must not require grad, and results that never do."""

from __future__ import annotations

import pytest
from op_sampling import Case, Make, NoSamples, all_specs, samples_of, tensors_in

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

aten = torch.ops.aten


def _rows():
    return torch.linspace(0.1, 0.9, 6).reshape(2, 3)


LABELS = [0, 2]
REFUSED = [
    ("nll_loss_forward", "weight", (3,), lambda w: F.nll_loss(_rows(), torch.tensor(LABELS), w)),
    ("nll_loss_forward", "weight", (3,), lambda w: F.cross_entropy(_rows(), torch.tensor(LABELS), w)),
    (
        "nll_loss2d_forward",
        "weight",
        (3,),
        lambda w: F.nll_loss(_rows().reshape(1, 3, 2, 1), torch.zeros(1, 2, 1, dtype=torch.long), w),
    ),
    ("binary_cross_entropy", "weight", (3,), lambda w: F.binary_cross_entropy(_rows(), _rows(), w)),
    ("binary_cross_entropy_with_logits", "weight", (3,), lambda w: F.binary_cross_entropy_with_logits(_rows(), _rows(), w)),
    (
        "binary_cross_entropy_with_logits",
        "pos_weight",
        (3,),
        lambda w: F.binary_cross_entropy_with_logits(_rows(), _rows(), pos_weight=w),
    ),
    ("multi_margin_loss", "weight", (3,), lambda w: F.multi_margin_loss(_rows(), torch.tensor(LABELS), weight=w)),
    ("soft_margin_loss", "target", (2, 3), lambda t: F.soft_margin_loss(_rows(), t)),
    ("native_batch_norm", "running_mean", (3,), lambda m: F.batch_norm(_rows(), m, torch.ones(3))),
    ("native_batch_norm", "running_var", (3,), lambda v: F.batch_norm(_rows(), torch.zeros(3), v, training=True)),
    ("native_batch_norm", "running_mean", (2,), lambda m: F.instance_norm(_rows()[None], m, torch.ones(2))),
    (
        "_native_batch_norm_legit",
        "running_mean",
        (3,),
        lambda m: torch._native_batch_norm_legit(_rows(), None, None, m, torch.ones(3), True, 0.1, 1e-5),
    ),
    (
        "_native_batch_norm_legit_no_training",
        "running_var",
        (3,),
        lambda v: aten._native_batch_norm_legit_no_training(_rows(), None, None, torch.zeros(3), v, 0.1, 1e-5),
    ),
    (
        "fractional_max_pool2d",
        "random_samples",
        (1, 1, 2),
        lambda s: F.fractional_max_pool2d(torch.rand(1, 1, 6, 6), 2, output_size=3, _random_samples=s),
    ),
    (
        "fractional_max_pool3d",
        "random_samples",
        (1, 1, 3),
        lambda s: F.fractional_max_pool3d(torch.rand(1, 1, 6, 6, 6), 2, output_size=3, _random_samples=s),
    ),
    ("rrelu_with_noise", "noise", (2, 3), lambda n: aten.rrelu_with_noise(_rows(), n)),
    ("linalg_pinv", "atol", (), lambda t: torch.linalg.pinv(_rows(), atol=t)),
    ("linalg_pinv", "rtol", (), lambda t: torch.linalg.pinv(_rows().requires_grad_(), rtol=t)),
    (
        "_scaled_dot_product_flash_attention_for_cpu",
        "attn_mask",
        (3, 3),
        lambda m: aten._scaled_dot_product_flash_attention_for_cpu(*[torch.rand(1, 2, 3, 4)] * 3, attn_mask=m),
    ),
]


@pytest.mark.parametrize("function, argument, shape, call", REFUSED)
def test_an_argument_that_must_not_require_grad(function, argument, shape, call):
    given = torch.full(shape, 0.5, requires_grad=True)
    with pytest.raises(RuntimeError) as raised:
        call(given)
    assert str(raised.value) == (
        f"The function '{function}' is not differentiable with respect to argument '{argument}'. "
        "This input cannot have requires_grad True."
    )
    with torch.no_grad():
        call(given)
    call(given.detach())


def test_in_place_forms_refuse_too():
    noise = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="'rrelu_with_noise_' is not differentiable with respect to argument 'noise'"):
        aten.rrelu_with_noise_(_rows().requires_grad_() * 1, noise)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda x: torch.scatter(x, 0, torch.tensor([[0, 1, 0]]), 2.0, reduce="add"), "aten::scatter"),
        (lambda x: (x * 1).scatter_(0, torch.tensor([[0, 1, 0]]), 2.0, reduce="multiply"), "aten::scatter_"),
    ],
)
def test_an_op_without_a_derivative_stops_every_pass_that_comes_to_it(call, name):
    x = _rows().requires_grad_()
    made = call(x)
    with pytest.raises(RuntimeError, match=f"^derivative for {name} is not implemented$"):
        torch.autograd.grad(made.sum(), x)
    with pytest.raises(RuntimeError, match=f"^derivative for {name} is not implemented$"):
        call(x).sum().backward()
    other = torch.ones((), requires_grad=True)
    assert torch.autograd.grad((call(x) * other).sum(), other)[0].requires_grad is False


def test_a_backward_op_without_a_derivative_stops_a_second_pass():
    x = _rows().requires_grad_()
    (once,) = torch.autograd.grad(F.multi_margin_loss(x, torch.tensor(LABELS)) * x.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"^derivative for aten::multi_margin_loss_backward is not implemented$"):
        torch.autograd.grad(once.sum(), x)


@pytest.mark.parametrize(
    "call, name",
    [
        (torch.special.zeta, "zeta"),
        (torch.igamma, "igamma: input"),
        (torch.special.gammaincc, "igammac: input"),
        (lambda x, y: torch.geqrf(x)[0] * y, "geqrf"),
    ],
)
def test_an_op_without_a_derivative_by_its_first_input(call, name):
    x, y = (_rows() + 2).requires_grad_(), _rows().requires_grad_()
    with pytest.raises(NotImplementedError, match=f"^the derivative for '{name}' is not implemented.$"):
        torch.autograd.grad(call(x, y.detach()).sum(), x)
    torch.testing.assert_close(torch.autograd.grad(call(x, y).sum(), y), torch.autograd.grad(call(x.detach(), y).sum(), y))


def _regular():
    return (torch.eye(3) + 0.1 * torch.arange(9.0).reshape(3, 3)).requires_grad_()


def _leaf(*shape):
    return torch.linspace(0.1, 0.9, torch.Size(shape).numel()).reshape(shape).requires_grad_()


@pytest.mark.parametrize(
    "call, requires",
    [
        (lambda: torch.linalg.lu(_regular()), [False, True, True]),
        (lambda: torch.lu_unpack(*torch.linalg.lu_factor(_regular())), [False, True, True]),
        (lambda: torch.linalg.lstsq(_regular(), _leaf(3, 2), driver="gelsd"), [True, True, False, False]),
        (lambda: aten._linalg_det(_regular()), [True, False, False]),
        (lambda: aten._linalg_slogdet(_regular()), [True, True, False, False]),
        (lambda: aten._linalg_solve_ex(_regular(), _leaf(3, 2)), [True, False, False, False]),
        (lambda: torch.native_batch_norm(_leaf(2, 3), None, None, None, None, True, 0.1, 1e-5), [True, False, False]),
        (lambda: torch.native_layer_norm(_leaf(2, 3), [3], None, None, 1e-5), [True, False, False]),
        (lambda: torch.native_group_norm(_leaf(2, 3), None, None, 2, 3, 1, 1, 1e-5), [True, True, True]),
        (lambda: aten.nll_loss_forward(_leaf(2, 3), torch.tensor(LABELS), None, 1, -100), [True, False]),
        (lambda: aten.log_sigmoid_forward(_leaf(2, 3)), [True, False]),
        (lambda: aten._weight_norm_interface(_leaf(3, 3), _leaf(3, 1)), [True, False]),
        (lambda: aten.multilabel_margin_loss_forward(_leaf(2, 3), torch.zeros(2, 3, dtype=torch.long), 1), [True, False]),
        (lambda: aten._ctc_loss(_leaf(3, 1, 4).log_softmax(-1), torch.tensor([[1, 2]]), [3], [2]), [True, False]),
        (lambda: aten._scaled_dot_product_flash_attention_for_cpu(*[_leaf(1, 2, 3, 4)] * 3), [True, False]),
    ],
)
def test_results_that_never_require_grad(call, requires):
    assert [result.requires_grad for result in call()] == requires


@pytest.mark.parametrize(
    "call, count",
    [
        (lambda: F.batch_norm(_leaf(2, 3), torch.zeros(3), torch.ones(3)), 3),
        (lambda: F.nll_loss(_leaf(2, 3), torch.tensor(LABELS)), 1),
        (lambda: F.binary_cross_entropy_with_logits(_leaf(2, 3), _rows()), 2),
    ],
)
def test_a_node_knows_nothing_of_what_is_left_out(call, count):
    assert len(call().grad_fn.next_functions) == count


# ---------------------------------------------------------------- integers


def _results(spec):
    """The tensors that an op makes of leaves that require grad; of none where made-up arguments do not fit it."""
    try:
        return tensors_in(Case(spec, 0).run(Make(grad=True))) if samples_of(spec, Make(grad=True)) else []
    except (NoSamples, RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError, IndexError):
        return []


@pytest.mark.filterwarnings("ignore")
def test_integer_results_of_every_op_never_require_grad():
    integers = 0
    for spec in all_specs():
        for result in _results(spec):
            if not result.is_floating_point() and not result.is_complex():
                integers += 1
                assert not result.requires_grad, spec.schema.full_name
    assert integers > 100


_LEAF = torch.ones(2, requires_grad=True)


def _written(write):
    target = torch.zeros(2, dtype=torch.int64)
    write(target)
    return target.requires_grad


@pytest.mark.parametrize(
    ("requires_grad", "wanted"),
    [
        (lambda: _LEAF.long().requires_grad, False),
        (lambda: _LEAF.to(torch.int8).requires_grad, False),
        (lambda: _LEAF.type(torch.int64).requires_grad, False),
        (lambda: _LEAF.view(torch.int32).requires_grad, False),
        (lambda: (_LEAF * 1).lt_(0.5).requires_grad, True),
        (lambda: torch.bucketize(_LEAF, torch.tensor([0.5])).requires_grad, False),
        (lambda: torch.detach_copy(_LEAF).requires_grad, True),
        (lambda: _written(lambda x: x.copy_(_LEAF)), False),
        (lambda: _written(lambda x: x.__setitem__(0, _LEAF[0])), False),
        (lambda: _written(lambda x: x.__setitem__(slice(None), _LEAF)), False),
        (lambda: _written(lambda x: x.fill_(_LEAF[0])), True),  # torch has it so, too
    ],
)
def test_what_requires_grad_is_what_does_in_torch(requires_grad, wanted):
    assert requires_grad() is wanted
