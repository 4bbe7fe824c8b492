"""What random programs beside torch brought to light, each as the smallest call, with what torch 2.13 does."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.registry import packets

t = torch.tensor
x1, x2, empty = t([1.0, 2.0]), torch.ones(2, 3), torch.ones(2, 0)
long0 = torch.zeros(0, dtype=torch.int64)

REFUSED = {  # a call, and the exception that torch raises
    # order of checks: what is wrong with dims and shapes comes before what is wrong with values
    "t(0).index_put((t([0, 1]),), t(1.0))": IndexError,
    "t([1]).index_put((t([5]),), t([1, 2]))": RuntimeError,
    "t(0).index_select(0, t([0, 0]))": RuntimeError,
    "x2.index_select(1, t([7]))": RuntimeError,
    "x2.index_select(0, t([7]))": IndexError,
    "t(0.0).index_select(1, t([0]))": IndexError,
    "t(0.0).index_add(0, t([0, 0]), t(1.0))": IndexError,
    "x1.index_add(0, t([7]), t([1.0]))": IndexError,
    "x1.index_add(0, t(0), t(1.0))": RuntimeError,
    "x1.index_copy(0, t([0], dtype=torch.int32), t([1.0]))": RuntimeError,
    "x1.index_copy(0, t([-1]), t([1.0]))": IndexError,
    "x1.index_copy(0, t([0, 1]), t(1))": IndexError,
    "x1.scatter(3, t([0]), t([1]))": IndexError,
    "x1.scatter_reduce(0, long0, t([1]), 'sum')": RuntimeError,
    "x1.index_fill(2, t([[0]]), 1.0)": IndexError,
    "torch.baddbmm(x2, x1, x2)": IndexError,
    "torch.mv(t(1.0), x1)": IndexError,
    "torch.cat([t(1.0)], 1)": RuntimeError,
    "torch.topk(t(1j), 1, 7)": IndexError,
    "t([1, 2]).lerp(t([1, 2, 3]), 0.5)": RuntimeError,
    "t([1, 2]).bitwise_and_(2.5)": RuntimeError,
    "t([1, 2]).__ilshift__(1.5)": RuntimeError,
    "x1.permute([])": RuntimeError,
    "t(1.0).unflatten(-1, [1, 1])": RuntimeError,
    "torch.slice_scatter(t(1.0), t(1.0))": IndexError,
    "t(1.0).count_nonzero(1)": IndexError,
    "t(1.0).repeat_interleave(2, 0)": IndexError,
    "t(1.0).copy_(t([1.0]))": RuntimeError,
    # dtypes and numbers that an op has no kernel for
    "~x1": TypeError,
    "t([True]).median()": NotImplementedError,
    "t([True]).kthvalue(1)": NotImplementedError,
    "t([True]).topk(1)": RuntimeError,
    "torch.isin(t([True]), t([1]))": RuntimeError,
    "torch.cdist(torch.ones(1, 1).half(), torch.ones(1, 1).half())": NotImplementedError,
    "torch.arange(3, dtype=torch.complex64)": NotImplementedError,
    "t([1j]).logit()": NotImplementedError,
    "t([0.5j]).to(torch.complex32).clamp_max_(0)": NotImplementedError,
    "t([0.5j]).to(torch.complex32).clamp(t(0.0))": NotImplementedError,
    "torch.xlogy(x1, 1j)": NotImplementedError,
    "torch.searchsorted(x1, t([1j]))": NotImplementedError,
    "t(1j).max(0)": RuntimeError,
    "x1.nansum(dtype=torch.complex64)": NotImplementedError,
    "x1.nanmean(dtype=torch.int64)": RuntimeError,
    "t([1j]).scatter_reduce(0, t([0]), t([1j]), 'amax')": NotImplementedError,
    "t([1], dtype=torch.uint8).fill_(-0.75)": RuntimeError,
    "t([1.0, 2.0]).half().fill_(70000)": RuntimeError,
    "t([1.0]).fill_(1e39)": RuntimeError,
    "t([1, 2]).__setitem__(t([0]), 1j)": RuntimeError,
    "t([1], dtype=torch.int8).__setitem__(t([0]), 300)": RuntimeError,
    "t([1, 2]).__setitem__(0, 1 << 70)": ValueError,
    "x1.clone().__setitem__(t([1, 0], dtype=torch.uint8), 0)": RuntimeError,
    "torch.nn.functional.hardtanh(t([1], dtype=torch.uint8))": RuntimeError,
    "t([6]).div_(t([6]), rounding_mode=None)": RuntimeError,
    "int(t(1 + 1j))": RuntimeError,
    "torch.ones(2, 2, dtype=torch.int64).pow_(torch.full((1, 2, 2), -1))": RuntimeError,
    "torch.embedding_renorm_(torch.ones(2, 2), t([0]), 1j, 2.0)": TypeError,
    "torch.ops.aten.native_dropout_backward(x1, x1 > 0, torch.ones(2).cfloat())": TypeError,
    "torch.ops.aten._pad_packed_sequence(x1, t([1], dtype=torch.int16), False, 1j, 3)": RuntimeError,
    "torch.bernoulli(torch.ones(2).cfloat(), 0.5, out=torch.ones(2))": RuntimeError,
    # memory that is written and read, or that is not there
    "overwritten(x1.clone(), t([0, 1]), None)": RuntimeError,
    "(lambda x: x.index_put_((t([0]),), x[1]))(x1.clone())": RuntimeError,
    "(lambda index: index.index_put_((index,), t([5, 6])))(t([1, 0]))": RuntimeError,
    "torch.ones(1)[1:].as_strided([], [])": RuntimeError,
    "t(1.0).expand(3).split(2)[0].ceil_()": RuntimeError,
    "torch.empty(0).masked_fill_(t([True, False]), 0.0)": RuntimeError,
    # an integer has no history
    "leaf().sum(dtype=torch.int8)": RuntimeError,
    "leaf().sum(0, dtype=torch.bool)": RuntimeError,
    "leaf().prod(dtype=torch.int64)": RuntimeError,
    "leaf().cumsum(0, dtype=torch.int16)": RuntimeError,
    "leaf().nansum(dtype=torch.int32)": RuntimeError,
    "t([1]).masked_fill(t([True]), leaf()[0])": RuntimeError,
    "t([1]).index_fill(0, t([0]), leaf()[0])": RuntimeError,
    # which of two reasons is given
    "t([1j]).scatter_reduce(1, t([0]), t([1j]), 'amax')": IndexError,
    "torch.ops.aten.rrelu_with_noise(x1, t([1j, 1j]), 0.1, 0.2, True)": RuntimeError,
    "torch.nn.functional.elu(x1, 1 + 1j)": RuntimeError,
    "torch.nn.functional.elu(x1, t(1 + 1j))": RuntimeError,
    "torch.nn.functional.leaky_relu(x1, t(1 + 1j))": RuntimeError,
    "t(1j).expand(2).le_(1.0)": RuntimeError,
    "t(1.0).expand(2).bitwise_and_(True)": RuntimeError,
    "t(1.0).ge_(1 - 2j)": NotImplementedError,
    "x1.lt(t(1j))": NotImplementedError,
    "overwritten(x1.clone(), (t(0.0),), None)": RuntimeError,
    "overwritten(torch.empty(0), long0, None)": RuntimeError,
    "overwritten(torch.ones(1, 1), (t([False, False]), t(0.0)), None)": IndexError,
    "(lambda x: x.index_put_([t(0.0)], x))(t(0.0))": IndexError,
    "torch.ones(1, 0)[-1:-2:2, t([6])]": IndexError,
    "t(1.0).xlogy_(t(1j))": RuntimeError,
    "t([1]).lerp_(t([1]), 0.5)": NotImplementedError,
    "x1.lerp(x1, t([1, 2]))": RuntimeError,
    "t(True).scatter_reduce(0, long0, t(True), 'mean')": NotImplementedError,
    "t(True).scatter_reduce_(0, t(0.0), t(True), 'mean')": RuntimeError,
    "t(1.0).index_add(0, t([0]), t([1.0]))": RuntimeError,
    "torch.nonzero_static(x1, size=5, fill_value=1 + 2j)": TypeError,
    "x1.__torch_function__(print, 0, ())": TypeError,
    "x1.is_set_to(0)": TypeError,
    "torch.select_scatter(torch.zeros(1, 2, 3)[1:2, :1, 2], t(1.0), 0, 0)": IndexError,
    # arguments that do not go together
    "x1.clamp(1, x1)": TypeError,
    "x1.clamp(x1, 1)": TypeError,
    "t(1.0).clamp_(0.0, t(1.0, requires_grad=True))": TypeError,
    "x1.clamp()": RuntimeError,
    "x2.t().contiguous(memory_format=torch.preserve_format)": RuntimeError,
    "torch.ones(1, 1, 1).contiguous(memory_format=torch.channels_last)": RuntimeError,
}


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("call", REFUSED)
def test_refused(call):
    with pytest.raises(REFUSED[call]) as refusal:
        eval(call)
    assert refusal.type is REFUSED[call]


def overwritten(target, index, value):
    """A tensor with a value, or with itself, at some of its places."""
    target[index] = target if value is None else value
    return target.tolist()


def leaf():
    return torch.ones(2, requires_grad=True)


GIVEN = {  # a call, and what it gives in torch
    # positions are looked at only where there are elements
    "empty[t([7])].shape": (1, 0),
    "empty.index_add(0, t([7]), torch.ones(1, 0)).shape": (2, 0),
    "empty.index_fill(0, t([7]), 1.0).shape": (2, 0),
    "torch.zeros(0, 0).index_fill(0, t(6), 0).shape": (0, 0),
    "torch.ones(1, 3).flip(0, 1)[-1:-1:2].shape": (0, 3),
    "torch.take_along_dim(long0, long0, 0).shape": (0,),
    "torch.cat([torch.ones(0)], 1).shape": (0,),
    "long0.softmax(0).dtype": torch.int64,
    "long0.floor_divide(t([0])).shape": (0,),
    "torch.nn.functional.layer_norm(torch.ones(1, 1, 0), [0]).shape": (1, 1, 0),
    "t(True).cumsum(0, dtype=torch.bool).item()": True,
    # numbers in other dtypes
    "overwritten(t([False, False]), t([1]), 1j)": [False, True],
    "overwritten(t([1, 2]), slice(0, 1), 3 + 0j)": [3, 2],
    "overwritten(t([1.0, 2.0]).half(), t([True, False]), 70000)": [float("inf"), 2.0],
    "overwritten(t([1.0, 2.0]), t([True, False]), t([5]))": [5.0, 2.0],
    "int(t(3 + 0j))": 3,
    "str(torch.nn.functional.nll_loss(torch.zeros(3), t(1), reduction='none'))": "tensor(0.)",
    "t([0.5j, 0]).to(torch.complex32).count_nonzero(0).item()": 1,
    "(300 // t([6], dtype=torch.uint8)).tolist()": [7],
    "x1.lerp(x1 + 2, t(1)).tolist()": [3.0, 4.0],
    "x1.diff(0, 7).tolist()": [1.0, 2.0],
    "(leaf().half() - 1j).requires_grad": True,
    "t(complex('inf')).sgn().isnan().item()": True,
    "t([1.0]).double().clamp(2 + 0j).tolist()": [2.0],
    # an imaginary number is true
    "t([False, False]).copy_(t([0.5j, 0])).tolist()": [True, False],
    "t([0.5j, 0]).to(torch.complex32).to(torch.bool).tolist()": [True, False],
    "t([0.5j, 1]).to(torch.complex32).all().item()": True,
    "t([0.5j, 0]).to(torch.complex32).any().item()": True,
    "t([0.5j]).to(torch.complex32).is_complex()": True,
    # elements that share no place can be written to
    "t([-0.5]).expand(2).unbind()[1].ceil_().item()": 0.0,
    "t(-0.5).expand(2).split(1)[1].ceil_().tolist()": [0.0],
    "t(1.0).expand(0, 2).fill_(t(1.0)).shape": (0, 2),
    "torch.empty(1, 0).expand(2, 0).copy_(t(1.0)).shape": (2, 0),
    "torch.ones(1, 1).expand(1, 2)[:0].cumprod_(1).shape": (0, 2),
    "t(1.0).as_strided([2, 1], [0, 3]).diagonal().zero_().tolist()": [0.0],
    "overwritten(x1.clone(), t([True, False]), x1[1:])": [2.0, 2.0],
    # where elements lie
    "torch.ones(2, 3)[2:].storage_offset()": 6,
    "torch.ones(2, 3)[:, 3:].storage_offset()": 3,
    "t([[1.0], [2.0]])[..., 2::2].as_strided([2], [0]).tolist()": [2.0, 2.0],
    "torch.where(torch.ones(2, 3).t() > 0, torch.ones(3, 2), t(0.0)).stride()": (1, 3),
    "(1 ** x2.t()).stride()": (2, 1),
    "torch.pow(2, x2.t()).stride()": (2, 1),
    "torch.addr(torch.ones(3, 3).t(), torch.ones(3), torch.ones(3)).stride()": (1, 3),
    "torch.slice_scatter(torch.arange(4.0)[::2], x1).stride()": (2,),
    "torch.select_scatter(x2.t(), x1, 0, 1).stride()": (1, 3),
    "(torch.diagonal_scatter(x2.t(), x1) + 1).stride()": (1, 3),
    "torch.slice_scatter(t([[1.0, 2.0]]).expand(3, 2), torch.ones(3, 2)).stride()": (2, 1),
    "torch.rsub(x2.t(), torch.ones(3, 2)).stride()": (2, 1),
    "torch.zeros_like(x2.t(), memory_format=torch.contiguous_format).stride()": (2, 1),
    "torch.full_like(x2.t(), 1, memory_format=torch.contiguous_format).stride()": (2, 1),
    "torch.ones_like(x2.t()).stride()": (1, 3),
    "t([1.0, 2.0]).double().expand(3, 2).half().stride()": (2, 1),
    # a number that is not used is not converted
    "torch.index_add(torch.zeros(2, 1), 1, long0, torch.ones(2, 0), alpha=1j).tolist()": [[0.0], [0.0]],
    "torch.ones(1, 0)[t([False]), t([6])].shape": (0,),
    # no dims are none of them
    "torch.ones(2).all([]).shape": (2,),
    "torch.zeros(2).any([]).tolist()": [False, False],
    "t(2.0).mT.item()": 2.0,
    "x2.t().is_contiguous(memory_format=torch.preserve_format)": False,
    "torch.ones(1, 1, 1).is_contiguous(memory_format=torch.channels_last)": False,
}


@pytest.mark.filterwarnings("ignore:Tensor.mT is deprecated")
@pytest.mark.parametrize("call", GIVEN)
def test_given(call):
    assert eval(call) == GIVEN[call]


def test_an_operand_that_is_written_to_is_read_first():
    shifted = t([6])
    shifted <<= shifted
    assert shifted.tolist() == [384]
    bounded = t([-2.875])
    bounded.clamp_(t([3.0]), bounded)
    assert bounded.tolist() == [-2.875]


def test_t_in_place_keeps_history_and_counts_as_a_write():
    leaf = torch.ones(2, 3, requires_grad=True)
    turned = (leaf * 2).t_()
    (turned * torch.arange(6.0).reshape(3, 2)).sum().backward()
    assert leaf.grad.tolist() == [[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]]
    vector = t([1.0])
    vector.t_()
    assert vector._version == 1


def test_put_needs_no_values_of_its_source_backward():
    leaf, source = torch.ones(3, requires_grad=True), t([5.0])
    result = leaf.put(t([1]), source)
    source[0] = 7.0
    result.sum().backward()
    assert leaf.grad.tolist() == [1.0, 0.0, 1.0]


def test_logcumsumexp_backward_in_half_precision():
    leaf = torch.zeros(2, dtype=torch.float16, requires_grad=True)
    leaf.logcumsumexp(0).sum().backward()
    assert leaf.grad.tolist() == [1.5, 0.5]


def test_an_expanded_tensor_is_filled_with_a_warning():
    with pytest.warns(UserWarning, match="index_fill_ on expanded tensors is deprecated") as caught:
        assert t(1.0).expand(2).index_fill_(0, t(1), 3.0).tolist() == [3.0, 3.0]
    assert caught[0].filename == __file__


def test_a_view_that_was_written_without_a_derivative_can_be_written_again():
    view = torch.ones(1).permute([0])
    view.floor_divide_(t(1.0, requires_grad=True))
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert view.fill_(t(2.0)).tolist() == [2.0] and view.requires_grad


def test_slopes_at_nan_and_infinity():
    for function, slope in (
        (torch.relu, 1.0),
        (lambda x: torch.nn.functional.threshold(x, 1.0, 2.0), 1.0),
        (lambda x: torch.logit(x, 0.1), 0.0),
        (torch.nn.functional.hardswish, 1.0),
        (torch.nn.functional.hardtanh, 1.0),
        (torch.nn.functional.elu, 1.0),
    ):
        leaf = t([float("nan")], requires_grad=True)
        function(leaf).backward(torch.ones(1))
        assert leaf.grad.tolist() == [slope]
    assert torch.polygamma(1, t(float("inf"))).item() == 0.0


@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "le_", "gt_", "ge_"])
def test_a_comparison_in_place_follows_both_operands(name):
    leaf, target = torch.ones(2, requires_grad=True), torch.ones(2)
    compared = getattr(target, name)(leaf)
    assert compared.requires_grad and len(compared.grad_fn.next_functions) == 2
    compared.sum().backward()
    assert leaf.grad.tolist() == [0.0, 0.0]
    assert not getattr(t([1, 2]), name)(leaf).requires_grad  # an integer has no history


def test_an_expanded_tensor_takes_values_that_require_grad():
    target = torch.zeros(1).expand(2)
    with pytest.warns(UserWarning, match="index_put_ on expanded tensors is deprecated"):
        target[(True,)] = t(3.0, requires_grad=True)
    assert target.tolist() == [3.0, 3.0] and target.requires_grad


def test_out_is_kept_whatever_else_a_call_has():
    target = torch.zeros(2)
    assert torch.sum(torch.ones(2, 2), t(1), out=target) is target and target.tolist() == [2.0, 2.0]

    class Duck:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function, kwargs

    for call in (
        lambda: torch.add(torch.ones(2), Duck(), out=target),
        lambda: torch.add(Duck(), 1, out=target),
        lambda: torch.cat([torch.ones(2), Duck()], out=target),
    ):
        assert call()[1] == {"out": target}
    duck = Duck()
    assert torch.add(torch.ones(2), 1, out=duck) == (torch.add, {"out": duck})
    assert target.tolist() == [2.0, 2.0]


def test_an_error_inside_a_call_with_out_does_not_drop_out(monkeypatch):
    def fails(*args, **kwargs):
        raise AttributeError("in the kernel")

    monkeypatch.setattr(packets["exp"].overloads[""], "kernel", fails)
    with pytest.raises(RuntimeError, match="in the kernel"):
        torch.exp(torch.ones(2), out=torch.zeros(2))


def test_a_refused_clamp_writes_nothing():
    target = t(0.0)
    with pytest.raises(RuntimeError):
        target.clamp_(1.0, -2j)
    assert target.item() == 0.0


def test_a_leaf_that_out_gave_another_shape_gets_a_gradient_of_that_shape():
    leaf = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="resized"):
        torch.lt(torch.ones(3), 2, out=leaf)
    leaf.sum().backward()
    assert leaf.grad.tolist() == [1.0, 1.0, 1.0]


def test_gradient_of_a_byte_mask():
    leaf = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match=r"torch\.uint8 is now deprecated"):
        leaf[t([1, 0], dtype=torch.uint8)].sum().backward()
    assert leaf.grad.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "turn", [lambda x: x.t_(), lambda x: x.unsqueeze_(1), lambda x: x.transpose_(0, 1), lambda x: x.squeeze_()]
)
def test_a_view_that_looks_at_its_part_another_way(turn):
    leaf = torch.ones(2, 3, requires_grad=True)
    whole = leaf * torch.arange(6.0).view(2, 3)
    turn(whole[:, 1:])
    (whole * torch.arange(1.0, 7.0).view(2, 3)).sum().backward()
    assert leaf.grad.tolist() == [[0.0, 2.0, 6.0], [12.0, 20.0, 30.0]]


def test_a_leaf_that_took_another_shape_in_no_grad_gets_a_gradient_of_that_shape():
    for change, shape in ((lambda x: x.unsqueeze_(1), (1, 1, 2)), (lambda x: x.squeeze_(), (2,)), (lambda x: x.t_(), (2, 1))):
        leaf = torch.ones(1, 2, requires_grad=True)
        with torch.no_grad():
            change(leaf)
        leaf.sum().backward()
        assert leaf.grad.shape == shape


def test_gradients_of_an_expanded_leaf_add_up():
    leaf = torch.zeros(1).expand(2).requires_grad_()
    part = leaf.as_strided([], [])
    for total in (0.5, 1.0):
        part.clone().backward()
        assert leaf.grad.tolist() == [total, total] and leaf.grad.stride() == (1,)


@pytest.mark.parametrize(
    ("call", "wanted"),  # of 1.75 and -2.375 in bfloat16, with 0.1, which it does not have
    [
        (lambda x: torch.addcmul(x, x, x), [4.8125, 3.265625]),
        (lambda x: torch.addcdiv(x, x, x, value=0.1), [1.8515625, -2.28125]),
        (lambda x: torch.add(x, x, alpha=0.1), [1.921875, -2.609375]),
        (lambda x: torch.lerp(x, x + 1, 3.1), [4.84375, 0.7265625]),
    ],
)
def test_sums_with_products_round_once_in_half_precision(call, wanted):
    x = t([1.75, -2.375], dtype=torch.bfloat16)
    assert call(x).tolist() == wanted
    assert call(x.half()).dtype == torch.float16


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "call",
    [
        lambda x: x * 0.1,
        lambda x: 0.1 * x,
        lambda x: x / 3.1,
        lambda x: x * t(0.1),
        lambda x: x / t(3.1, dtype=torch.float64),
        lambda x: x.clone().mul_(0.1),
        lambda x: x.clone().div_(3.1),
        lambda x: torch.mul(x, 0.1, out=torch.empty_like(x)),
        lambda x: torch.div(x, 3.1, rounding_mode=None),
        lambda x: torch.autograd.grad((x.requires_grad_() * 0.1).sum(), x)[0],
    ],
)
def test_numbers_keep_their_digits_beside_half_precision(call, kind):
    x = (torch.arange(64.0) / 64 + 0.3).to(kind)
    result = call(x.clone())
    assert result.dtype is kind and result.equal(call(x.float()).to(kind))


def test_a_tensor_without_dims_before_a_product_is_rounded_in_half_precision():
    x = (torch.arange(64.0) / 64 + 0.3).half()
    assert (t(0.1) * x).equal(t(0.1).half() * x)
