"""Making tensors, converting them and leaving them: each expression has PyTorch's result, or raises what it raises.

recorded_creation.json holds what PyTorch answered. Run this file with a Python that has PyTorch to record it again.
"""

from __future__ import annotations

import array
import copy
import importlib
import json
import pickle
import warnings
from collections import UserList
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).with_name("recorded_creation.json")
torch = importlib.import_module("torch" if __name__ == "__main__" else "mindtorch_v2")

EXPRESSIONS = """
T(np.float64(1.5))
T([np.float64(1.5)])
T([np.float32(1.5), 2.0])
T(np.float32(2))
T([np.int32(1)])
T([np.int32(1), 2])
T(np.int16(3))
T([np.bool_(True)])
T(2**63)
T([2**63])
T(-2**63)
T(2**63, dtype=torch.float32)
T(2**63, dtype=torch.uint64)
T(2**64, dtype=torch.float64)
T(300, dtype=torch.uint8)
T(-1, dtype=torch.uint8)
T([1.7e30], dtype=torch.int32)
T(float('nan'), dtype=torch.int64)
T(1e40, dtype=torch.float32)
T([70000.], dtype=torch.float16)
T(1+2j, dtype=torch.float32)
T([1.9, -1.9], dtype=torch.int8)
T(200, dtype=torch.int8)
T([256], dtype=torch.bool)
T([[1, 2], [3]])
T([[1, 2], 3])
T([1, [2, 3]])
T([[[1], [2]], [[3]]])
T([[], []])
T([[[]]])
T('a')
T(['a'])
T(None)
T({})
T(object())
T([1, 'a'])
T(range(3))
T((1, 2))
T(UserList([1, 2]))
T(array.array('f', [1, 2]))
T(b'ab')
T(bytearray(b'ab'))
T([T(1.5), 2])
T([T(1), T(2.5)])
T([torch.ones(2), torch.zeros(2)])
T([torch.ones(1), torch.zeros(1)])
T([[T(1)], [T(2)]])
T([T(1, dtype=torch.int8)])
T([T(1., dtype=torch.float16), 2.])
T([np.ones(2), np.zeros(2)])
T([np.ones(2, 'f4'), [1, 2]])
T(np.ones(2, '>f4'))
T(np.array(['a']))
T(np.ones((2, 2))[::-1])
T(np.ones(2, 'u2'))
T(np.ones(2, object))
T(np.array(3.0))
T(1j)
T([1, 2j])
T([True, 1.5])
T([True, False, 2])
T([])
T([], dtype=torch.int32)
T(torch.ones(2, 2).t())
T([1, 2], requires_grad=True)
T([1., 2], requires_grad=True)
T(1., device='meta').shape
T([1., 2.], dtype=float)
T([1, 2], dtype='float32')
T([1.], torch.float64)
T([1.], device='cuda')
torch.as_tensor(np.float32(2))
torch.as_tensor([1, 2])
torch.as_tensor(np.ones(2), dtype=torch.float32)
torch.from_numpy([1])
torch.from_numpy(np.float32(1))
torch.from_numpy(np.ones(3)[::-1])
torch.from_numpy(np.array(['a']))
torch.from_numpy(np.zeros(2, [('a', 'f4')]))
torch.from_numpy(np.ones(0))
torch.from_numpy(np.arange(6.).reshape(2, 3).T).stride()
torch.frombuffer(bytearray(b'\\0' * 8), dtype=torch.float32)
torch.frombuffer(bytearray(b'\\1' * 8), dtype=torch.int16, count=2, offset=2)
torch.frombuffer(bytearray(b'\\0' * 7), dtype=torch.float32)
torch.frombuffer(bytearray(), dtype=torch.float32)
torch.frombuffer(bytearray(8), dtype=torch.float32, count=5)
torch.frombuffer(bytearray(8), dtype=torch.float32, offset=9)
torch.frombuffer([1], dtype=torch.float32)
torch.asarray([1, 2])
torch.asarray(np.ones(2), copy=True)
torch.asarray(torch.ones(2), dtype=torch.float64, copy=False)
torch.asarray(bytearray(8), dtype=torch.float32)
torch.asarray([1.], copy=False)
torch.arange(5, dtype=torch.bool)
torch.arange(2.5)
torch.arange(0, 5, 0)
torch.arange(0, -5)
torch.arange(float('nan'))
torch.arange(-3, 3.5, 1)
torch.arange(T(3))
torch.arange(end=4, start=1)
torch.arange(3, dtype=torch.float16)
torch.arange(0, 2**40, 2**38)
torch.linspace(0, 10, 4, dtype=torch.int64)
torch.linspace(-5, 5, 7, dtype=torch.int32)
torch.linspace(0.3, 7.1, 23)
torch.linspace(0.3, 7.1, 23, dtype=torch.float64)
torch.linspace(0, 1, 0)
torch.linspace(3, 3, 1)
torch.linspace(0, 1, -1)
torch.linspace(0, 1, 3, dtype=torch.float16)
torch.linspace(T(0.), T(2.), 3)
torch.linspace(0, 1 + 1j, 3)
torch.logspace(0, 3, 4, base=2)
torch.logspace(0, 3, 4, dtype=torch.int64)
torch.full((2,), 1j)
torch.full((2,), True)
torch.full((2,), 2, dtype=torch.float32)
torch.full((2,), T(2.5))
torch.full((2,), 300, dtype=torch.uint8)
torch.eye(-1)
torch.eye(2, -1)
torch.eye(2, 3)
torch.eye(3, 2, dtype=torch.int64)
torch.empty_strided((2, 3), (1, 2)).stride()
torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride()
torch.empty_permuted((2, 3, 4), (2, 0))
torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
torch.empty(2, 3, memory_format=torch.channels_last)
torch.zeros_like(torch.ones(2, 3, 4, 5), memory_format=torch.channels_last).stride()
torch.empty_like(torch.ones(6, 8)[::2, ::2].t()).stride()
torch.empty_like(torch.ones(2, 3, 8)[:, :, ::2].permute(2, 0, 1)).stride()
torch.empty_like(torch.ones(2, 1, 4).permute(2, 1, 0).expand(4, 5, 2)).stride()
torch.empty_like(torch.ones(1, 4).expand(3, 4)).stride()
torch.full_like(torch.ones(2, dtype=torch.int64), 2.7)
torch.ones_like(torch.ones(2, 3).t()).stride()
torch.complex(torch.ones(2), torch.ones(2, dtype=torch.float64))
torch.complex(torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64))
torch.complex(torch.ones(2), torch.zeros(2, 1))
torch.polar(T([1., 2.]), torch.zeros(2))
torch.zeros(2, -1)
torch.ones(2, -1)
torch.zeros((2,), device='cuda')
torch.zeros(T(2), 3)
torch.zeros([])
torch.scalar_tensor(3)
torch.ones(2).new_full((2,), 3)
torch.ones(2, dtype=torch.int64).new_full((2,), 3.7)
torch.ones(2).new_zeros(2, 3)
torch.ones(2).new_empty_strided((2, 3), (1, 2)).stride()
torch.ones(2, dtype=torch.float64).new_tensor([1, 2])
torch.ones(2).new_ones((2,), dtype=torch.int8)
torch.Tensor(2, 3).shape
torch.Tensor([1, 2])
torch.Tensor()
torch.Tensor(torch.ones(2))
torch.Tensor(3.5)
torch.LongTensor([1.5, 2])
torch.Tensor(torch.Size([2, 3])).shape
isinstance(torch.ones(2), torch.FloatTensor)
isinstance(torch.ones(2), torch.LongTensor)
torch.BoolTensor([0, 1])
torch.FloatTensor.dtype
torch.Tensor(np.ones(2))
torch.ByteTensor(b'ab')
torch.ones(2).new([1, 2])
torch.zeros_like(torch.empty(2, 3, device='meta').t(), device='cpu').stride()
torch.ones(2, device='meta').new_full((2,), 3.0, device='cpu')
torch.ones_like(torch.ones(2, device='meta')).device.type
torch.zeros(2, dtype=torch.uint8).fill_(300)
torch.zeros(2, dtype=torch.uint8).fill_(-1)
torch.zeros(2, dtype=torch.int8).fill_(200)
torch.zeros(2, dtype=torch.int64).fill_(2.7)
torch.zeros(2).fill_(1j)
torch.zeros(2, dtype=torch.bool).fill_(3)
torch.zeros(2).fill_(torch.ones(2))
torch.zeros(2).fill_(T(3))
torch.ones(2).copy_(torch.ones(3))
torch.ones(2).copy_(torch.ones(3, 2))
torch.ones(2, 3).copy_(T([1, 2, 3]))
torch.ones(2, 3).item()
torch.ones(0).item()
torch.ones(1, device='meta').item()
torch.ones(1, device='meta').cpu()
torch.ones(1).cuda()
T([300., -1.]).to(torch.int64)
T([1e6]).half()
T([1+2j]).float()
T([1j, 0]).bool()
torch.ones(2).bfloat16().numpy()
torch.ones(2, device='meta').numpy()
torch.ones(2, requires_grad=True).numpy()
torch.ones(2, requires_grad=True).numpy(force=True).tolist()
torch.ones(2).to()
torch.ones(2).to(torch.float32, torch.int8)
torch.ones(2).to('cpu', torch.float64, False, True)
torch.ones(2).to(torch.ones(2, dtype=torch.int8))
torch.ones(2).to(other=torch.ones(2, dtype=torch.int8))
torch.ones(2).to(dtype=torch.float16, device='cpu')
torch.ones(2).type('torch.DoubleTensor')
torch.ones(2).type(torch.LongTensor)
torch.ones(2).type('x')
torch.ones(2).bfloat16().type()
torch.ones(2, 3, 4).to(memory_format=torch.channels_last)
torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).stride()
torch.ones(2, 3, 4, 5).to(torch.float64, memory_format=torch.channels_last).stride()
torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last).is_contiguous()
torch.ones(2, 3).is_contiguous(memory_format=torch.channels_last)
torch.ones(2, 3).t().clone().stride()
torch.ones(2, 3).t().clone(memory_format=torch.contiguous_format).stride()
torch.ones(2, 3).t().double().stride()
len(T(1))
list(T(1))
int(torch.ones(2))
float(T(1j))
complex(T(1.))
[1, 2][T(1.)]
[1, 2][T([1])]
[1, 2][T(True)]
bool(torch.ones(0))
bool(torch.ones(2))
f'{T(1.5):.3f}'
f'{torch.ones(2):.3f}'
f'{torch.ones(2)}'
3 in T([1, 3])
'a' in T([1, 3])
T(3) in T([1, 3])
list(reversed(T([1, 2])))
torch.ones(2).get_device()
torch.ones(2).is_cuda
torch.ones(2).cfloat()
np.sin(torch.zeros(2))
np.asarray(torch.ones(2)).tolist()
np.add(np.ones(2, 'f4'), torch.ones(2))
T([[1.5, 2], [3, 4]]).tolist()
torch.zeros(0, 2).tolist()
copy.deepcopy(torch.ones(2, requires_grad=True) * 2)
copy.deepcopy(torch.ones(2, 2)[:, 1:]).stride()
""".strip().splitlines()


def answer(expression: str) -> list[Any]:
    """What an expression gives: a tensor's text, dtype and shape, the text of anything else, or what it raises."""
    names = {"torch": torch, "T": torch.tensor, "np": np, "array": array, "UserList": UserList, "copy": copy}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = eval(expression, names)
        except Exception as error:
            return [type(error).__name__, str(error).splitlines()[0][:90] if str(error) else ""]
    if isinstance(value, torch.Tensor):
        values = value.tolist() if "empty" not in expression else None
        return [str(values), str(value.dtype), list(value.shape), value.requires_grad]
    return [repr(value)]


if __name__ == "__main__":
    known = ",\n".join(f"{json.dumps(e)}: {json.dumps(answer(e))}" for e in EXPRESSIONS)
    RECORDED.write_text(f"{{\n{known}\n}}\n")
    raise SystemExit

import pytest  # noqa: E402  the recording needs PyTorch and nothing else

from mindtorch_v2._dispatch import observer  # noqa: E402

KNOWN = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression: str) -> None:
    assert answer(expression) == KNOWN[expression]


def test_tensor_copies_and_from_numpy_shares() -> None:
    source = np.array([1.0, 2.0], dtype=np.float32)
    copied, shared, also = torch.tensor(source), torch.from_numpy(source), torch.as_tensor(source)
    source[0] = 9
    assert (copied.tolist(), shared.tolist(), also.tolist()) == ([1, 2], [9, 2], [9, 2])
    shared[1] = 7
    assert source[1] == 7
    assert torch.as_tensor(shared) is shared


@pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning")  # since NumPy 2.5
def test_numpy_shares_memory_but_not_its_shape() -> None:
    tensor = torch.zeros(4)
    seen = tensor.numpy()
    seen[1] = 5
    seen.shape = (2, 2)
    assert tensor.tolist() == [0, 5, 0, 0]


def test_what_cannot_be_written_to_is_said() -> None:
    readonly = np.ones(2)
    readonly.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(readonly)
    with pytest.warns(UserWarning, match="not writable"):
        torch.frombuffer(b"\0" * 4, dtype=torch.int32)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        torch.tensor(torch.ones(1))
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        torch.ones(1, dtype=torch.complex64).float()


def ops_of(body: Any) -> list[str]:
    state, rows = observer.thread_state(), []
    state.append_row = rows.append
    observer.acquire()
    try:
        body()
    finally:
        state.append_row = None
        observer.release()
    return [observer.op_names[row[0]] for row in rows]


ONES = ["aten::empty", "aten::fill_", "aten::ones"]


@pytest.mark.parametrize(
    ("body", "ops"),
    [
        (lambda: torch.tensor([1.0, 2.0]), ["aten::empty", "aten::to", "aten::lift_fresh", "aten::detach_"]),
        (lambda: torch.tensor(3), ["aten::empty", "aten::to", "aten::lift_fresh", "aten::detach_"]),
        (lambda: torch.from_numpy(np.ones(2)), ["aten::lift_fresh"]),
        (lambda: torch.ones(2).new_tensor([1]), [*ONES, "aten::empty", "aten::to", "aten::lift_fresh", "aten::detach_"]),
        (lambda: torch.randn(4, 4), ["aten::empty", "aten::normal_", "aten::randn"]),
    ],
)
def test_making_a_tensor_is_seen_as_torch_s(body: Any, ops: list[str]) -> None:
    assert ops_of(body) == ops


@pytest.mark.parametrize(
    ("body", "ops"),
    [
        (lambda x: x.item(), ["aten::_local_scalar_dense", "aten::item"]),
        (lambda x: float(x), ["aten::_local_scalar_dense", "aten::item"]),
        (lambda x: bool(x), ["aten::_local_scalar_dense", "aten::item", "aten::is_nonzero"]),
        (lambda x: x.float(), ["aten::to"]),
        (lambda x: x.to(torch.float64), ["aten::_to_copy", "aten::to"]),
        (lambda x: x.contiguous(), []),
        (lambda x: x.expand(2, 2).contiguous(), ["aten::expand", "aten::clone", "aten::contiguous"]),
    ],
)
def test_leaving_and_converting_are_seen_even_where_nothing_needs_doing(body: Any, ops: list[str]) -> None:
    x = torch.tensor(1.5)
    assert ops_of(lambda: body(x)) == ops


def test_conversions_that_change_nothing_give_the_tensor_itself() -> None:
    x = torch.ones(2)
    assert x.to(torch.float32) is x and x.to("cpu") is x and x.float() is x and x.to(x) is x
    assert x.to(torch.float32, copy=True) is not x


def test_gradients_of_conversions() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.to(torch.float64)
    assert y.grad_fn.name() == "ToCopyBackward0"
    (y * 2).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (torch.float32, [2, 2])
    z = (x * 1).fill_(3.0)
    assert (z.grad_fn.name(), torch.fill(x * 1, 2.0).grad_fn.name()) == ("FillBackward2", "FillBackward0")
    x.grad = None
    torch.complex(x, x * 2).imag.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_copies_of_tensors_that_share_memory_share_it_again() -> None:
    base = torch.arange(6.0).view(2, 3)
    for again in (copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
        copied, turned = again([base, base.t()])
        copied[0, 1] = 9
        assert turned[1, 0] == 9 and base[0, 1] == 1
        assert turned.stride() == (1, 3)
    shallow = copy.copy(base)
    shallow[0, 0] = 7
    assert base[0, 0] == 7


def test_a_deep_copy_keeps_grad_and_attributes() -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.full((2,), 3.0)
    x.note = ["kept"]
    y = copy.deepcopy(x)
    assert y.requires_grad and y.is_leaf and y.grad.tolist() == [3, 3] and y.note == ["kept"]
    assert y.note is not x.note
    half = torch.ones(2, dtype=torch.bfloat16)
    assert pickle.loads(pickle.dumps(half)).dtype is torch.bfloat16
    assert pickle.loads(pickle.dumps(x)).requires_grad


def test_a_subclass_can_be_made_from_data() -> None:
    class Mine(torch.Tensor):
        pass

    made = Mine([1, 2])
    assert type(made) is Mine and type(made + 1) is Mine and made.tolist() == [1, 2]
    assert type(copy.deepcopy(made)) is Mine


def test_the_default_dtype_decides_what_floats_become() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        kinds = [
            torch.tensor(1.0).dtype,
            torch.zeros(1).dtype,
            torch.rand(1).dtype,
            torch.Tensor([1]).dtype,
            torch.tensor(1j).dtype,
            torch.arange(1.0).dtype,
        ]
    finally:
        torch.set_default_dtype(torch.float32)
    assert kinds == [torch.float64] * 4 + [torch.complex128, torch.float64]


@pytest.mark.parametrize(
    ("bounds", "kind", "numbers"),
    [
        ((0.0, -8.000001, -4.0), torch.uint8, [0, 252, 248]),
        ((1.0, 5.000001, 2.0), torch.uint8, [1, 3, 5]),
        ((1.0, 5.000001, 2.0), torch.int32, [1, 3, 5]),
        ((1.0, 5.000001, 2.0), torch.int64, [1, 3]),
        ((0.5, 5.5, 1.5), torch.int64, [0, 1, 2, 3, 4]),
        ((0.5, 5.5, 1.5), torch.int32, [0, 1, 2, 3]),
        ((0, 2, 0.5), torch.int32, [0, 0, 0, 0]),
        ((300, 303), torch.uint8, [44, 45, 46]),
    ],
)
def test_only_ranges_of_int64_are_counted_in_whole_numbers(bounds: Any, kind: Any, numbers: list[int]) -> None:
    assert torch.arange(*bounds, dtype=kind).tolist() == numbers
    assert torch.arange(*bounds, dtype=kind, device="meta").shape == (len(numbers),)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: torch.arange(0, 5, 0.5, dtype=torch.int64), ValueError, "step must be nonzero"),
        (lambda: torch.arange(0, 64, 0.5, out=torch.zeros(0, dtype=torch.int64)), ValueError, "step must be nonzero"),
        (lambda: torch.arange(0, 5, float("nan")), RuntimeError, "step must be nonzero"),
        (lambda: torch.arange(3j), RuntimeError, "value cannot be converted to type double without overflow"),
        (
            lambda: torch.zeros(2, dtype=torch.float32, out=torch.zeros(2, dtype=torch.int64)),
            RuntimeError,
            "dtype Float does not match dtype of out parameter (Long)",
        ),
        (
            lambda: torch.linspace(torch.ones(1), 2, 3),
            RuntimeError,
            "linspace only supports 0-dimensional start and end tensors, but got start with 1 dimension(s).",
        ),
        (
            lambda: torch.logspace(torch.ones(1), torch.ones(1, 1), 3),
            RuntimeError,
            "logspace only supports 0-dimensional start and end tensors, but got start with 1 dimension(s) and end with 2 "
            "dimension(s).",
        ),
        (
            lambda: torch.empty_permuted((2,), (3,)),
            RuntimeError,
            "Dimension out of range (expected to be between 0 and 0, but got 3 at index 0).  NB: negative dims not currently "
            "supported; file an issue if you want it.",
        ),
        (lambda: torch.empty_permuted((2, 3), (0, 0)), RuntimeError, "Duplicate dim not allowed"),
        (
            lambda: torch.multinomial(torch.tensor([float("nan"), 1]), 2, True),
            RuntimeError,
            "invalid multinomial distribution (encountering probability entry < 0)",
        ),
        (
            lambda: torch.multinomial(torch.tensor([float("inf"), float("nan")]), 2, True),
            RuntimeError,
            "invalid multinomial distribution (encountering probability entry = infinity or NaN)",
        ),
        (
            lambda: torch.from_file("no such file", size=2),
            RuntimeError,
            "unable to open file <no such file> in read-only mode: No such file or directory (2)",
        ),
        (
            lambda: torch.from_file("any", size=2, pin_memory=True),
            RuntimeError,
            "tensors constructed from a file cannot be pinned",
        ),
    ],
)
def test_what_cannot_be_made(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        make()
    assert str(raised.value) == message


def test_factories_compute_in_the_dtype_of_what_they_fill() -> None:
    assert torch.arange(0, 2.5, out=torch.zeros(0, dtype=torch.int64)).tolist() == [0, 1]
    assert torch.linspace(0, 1.5, 3, out=torch.zeros(0, dtype=torch.int64)).tolist() == [0, 0, 1]
    assert torch.full((1,), 1.5, out=torch.zeros(1, dtype=torch.int64)).tolist() == [1]
    torch.manual_seed(0)
    assert torch.rand(2, out=torch.zeros(2, dtype=torch.float64)).tolist() == [0.9700530018065531, 0.707819864399788]
    assert torch.linspace(torch.tensor(1j), 2, 3).tolist() == [1j, 1 + 0.5j, 2]


def test_samples_without_replacement_lie_in_order() -> None:
    assert torch.multinomial(torch.ones(3, 10), 3).stride() == (3, 1)


def test_asarray_changes_what_requires_grad_only_when_told() -> None:
    leaf = torch.ones(3, requires_grad=True)
    inner = leaf * 2
    assert torch.asarray(inner) is inner and torch.asarray(leaf) is leaf
    assert torch.asarray(inner, dtype=torch.float64).requires_grad
    seen = torch.asarray(inner, requires_grad=False)
    assert not seen.requires_grad and seen.data_ptr() == inner.data_ptr()
    assert torch.asarray(leaf, requires_grad=False) is leaf and not leaf.requires_grad
    assert torch.asarray(leaf, requires_grad=True) is leaf and leaf.requires_grad


class Exports:
    """An array behind the protocol of capsules, of the first version or of the one asked for."""

    def __init__(self, array: np.ndarray, versioned: bool) -> None:
        self.array, self.versioned = array, versioned

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options if self.versioned else {})

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize(
    "export",
    [
        lambda x: x,
        lambda x: x.__dlpack__(),
        torch.to_dlpack,
        lambda x: Exports(x.numpy(), False),
        lambda x: Exports(x.numpy(), True),
    ],
)
def test_memory_taken_from_a_capsule_can_be_written_to(export: Any) -> None:
    x = torch.arange(4)
    for take in (torch.from_dlpack, torch.from_dlpack, torch.asarray):
        taken = take(export(x))
        taken[0] += 5
        assert taken.data_ptr() == x.data_ptr()
    assert x.tolist() == [15, 1, 2, 3]
    kept = torch.from_dlpack(export(x))
    del x, taken
    assert kept.tolist() == [15, 1, 2, 3]


def test_a_file_as_memory(tmp_path: Path) -> None:
    path = str(tmp_path / "numbers")
    shared = torch.from_file(path, shared=True, size=3)
    shared.copy_(torch.tensor([1.0, 2.0, 3.0]))
    own = torch.from_file(path, size=2)
    own[0] = 9
    assert torch.from_file(path, False, 3).tolist() == [1, 2, 3] and own.tolist() == [9, 2]
    assert torch.from_file(path, shared=True, size=4).tolist() == [1, 2, 3, 0] and Path(path).stat().st_size == 16
    assert torch.from_file(path).tolist() == [] and torch.from_file(path, size=1, dtype=torch.int32).tolist() == [1065353216]
    with pytest.raises(RuntimeError, match="size <16> is smaller than the required mapping size <20>"):
        torch.from_file(path, size=5)
    with pytest.raises(RuntimeError, match="must not be negative"):
        torch.from_file(path, size=-1)
