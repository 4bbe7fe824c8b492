"""Memory: no use of the public API reads or writes past the end of an array, or what is no one's to write."""

from __future__ import annotations

import inspect
import math
import mmap
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from attacks import attack

import mindtorch_v2 as torch
from mindtorch_v2._core import shape_only

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

_REPEATED = "more than one element of the written-to tensor refers to a single memory location"


def _meta(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.empty(shape, dtype=dtype, device="meta")


# ---------------------------------------------------------------- tensors without memory


def _make_addresses_unreadable() -> None:
    """From here on, reading what a tensor on the meta device would have at its addresses ends the process.

    Outside of this attack they can be read, as zeros. Here nothing may rely on that.
    """

    def no_access(nbytes: int) -> mmap.mmap:
        return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)

    shape_only._map_zeros = no_access
    shape_only._Mapping.longest = memoryview(b"")


def _with_meta(value: Any, chosen: Callable[[], bool]) -> Any:
    """Arguments with some of their tensors on the meta device."""
    if isinstance(value, torch.Tensor):
        return value.to("meta") if chosen() else value
    if isinstance(value, list | tuple) and any(isinstance(each, torch.Tensor) for each in value):
        return type(value)([_with_meta(each, chosen) for each in value])
    return value


def _places(values: Any) -> int:
    return sum(_places(v) if isinstance(v, list | tuple) else isinstance(v, torch.Tensor) for v in values)


def _variants(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """The same arguments with each tensor in turn on the meta device, and with all of them there."""
    count = _places(args) + _places(kwargs.values())
    for only in [*range(count), None] if count > 1 else range(count):
        places = iter(range(count))

        def chosen(only: int | None = only, places: Iterator[int] = places) -> bool:
            at = next(places)
            return only is None or at == only

        yield [_with_meta(v, chosen) for v in args], {name: _with_meta(v, chosen) for name, v in kwargs.items()}


@attack("no op reads a tensor without memory: it refuses it, or works on its shape", small=150, large=10_000)
def ops_with_meta(size: int) -> str:
    import op_sampling as sampling

    _make_addresses_unreadable()
    warnings.simplefilter("ignore")
    specs = list(sampling.all_specs())
    random.Random(0).shuffle(specs)
    calls = refused = 0
    for spec in specs[:size]:
        try:
            samples = sampling.samples_of(spec, sampling.Make())
        except sampling.NoSamples:
            continue
        for args, kwargs in samples:
            for changed, named in _variants(args, kwargs):
                calls += 1
                try:
                    spec(*changed, **named)
                except (RuntimeError, TypeError, ValueError, IndexError, BufferError):
                    refused += 1
    return f"{calls:,} calls of {min(size, len(specs)):,} ops, {refused:,} refused; the addresses were not readable"


def _callables() -> list[tuple[str, Any]]:
    """The methods of tensors and the functions of torch's modules, by name; classes and what changes settings left out."""
    found = [(f"Tensor.{name}", getattr(torch.Tensor, name)) for name in dir(torch.Tensor)]
    for module in (torch, torch.nn.functional, torch.linalg, torch.special, torch.fft, torch.nn.utils.rnn):
        found += [(f"{module.__name__}.{name}", getattr(module, name)) for name in dir(module)]
    left_out = ("set_default", "save", "load", "compile", "fork", "wait", "use_deterministic", "__init_subclass__", "__new__")
    return [
        (name, each)
        for name, each in found
        if callable(each)
        and not inspect.isclass(each)
        and not inspect.ismodule(each)
        and not name.rpartition(".")[2].startswith(left_out)
    ]


def _made_up(chance: random.Random) -> Any:
    """An argument: mostly a tensor without memory, sometimes something that goes along with one."""
    kind = chance.choice((torch.float32, torch.float32, torch.int64, torch.bool, torch.complex64, torch.uint8))
    shape = chance.choice(((), (3,), (3, 3), (2, 3, 3), (0,)))
    return chance.choice(
        (
            lambda: _meta(*shape, dtype=kind),
            lambda: _meta(*shape, dtype=kind),
            lambda: _meta(*shape, dtype=kind).t() if len(shape) == 2 else _meta(*shape, dtype=kind),
            lambda: torch.ones(shape, dtype=kind),
            lambda: [_meta(*shape, dtype=kind), torch.ones(shape, dtype=kind)],
            lambda: _meta(*shape, dtype=kind).untyped_storage(),
            lambda: 0,
            lambda: 1,
            lambda: 0.5,
            lambda: (1, 2),
            lambda: (slice(0, 1), _meta(1, dtype=torch.int64)),
        )
    )()


@attack("no method or function reads a tensor without memory", small=2_000, large=200_000, timeout_s=900)
def methods_with_meta(size: int) -> str:
    _make_addresses_unreadable()
    warnings.simplefilter("ignore")
    chance = random.Random(1)
    callables = _callables()
    refused = 0
    for number in range(size):
        name, function = callables[number % len(callables)]
        first = chance.choice((_meta(3, 3), torch.ones(3, 3), _meta(), _meta(3, dtype=torch.int64)))
        args = [first] * name.startswith("Tensor.") + [_made_up(chance) for _ in range(chance.randrange(4))]
        try:
            function(*args)
        except Exception:
            refused += 1
    return f"{size:,} calls of {len(callables):,} functions, {refused:,} refused; the addresses were not readable"


@attack("an array that lost its class still ends inside its addresses, which cannot be written to", small=200, large=20_000)
def stripped_arrays(size: int) -> str:
    chance = random.Random(2)
    read = 0
    for _ in range(size):
        shape = [chance.randrange(0, 40) for _ in range(chance.randrange(4))]
        tensor = torch.empty(shape, dtype=chance.choice((torch.float64, torch.int8, torch.complex64)), device="meta")
        for view in (tensor, tensor.transpose(0, -1) if shape else tensor, tensor.unsqueeze(0).expand(3, *shape)):
            for plain in (np.asarray(view._array), np.ascontiguousarray(view._array), np.array(view._array, subok=False)):
                assert not plain.any()
                read += plain.size
            try:
                np.asarray(view._array)[...] = 1
                assert not view.numel(), "written"
            except ValueError:
                pass
    return f"{size:,} tensors, {read:,} elements read, all zero; every write refused"


# ---------------------------------------------------------------- views and storages


@attack("a view stays inside its storage", small=200, large=20_000)
def views_outside_of_storage(size: int) -> str:
    chance = random.Random(0)
    refused = 0
    for _ in range(size):
        x = torch.zeros(chance.randrange(1, 8))
        shape = [chance.randrange(0, 6) for _ in range(chance.randrange(3))]
        stride = [chance.randrange(0, 6) for _ in shape]
        offset = chance.randrange(0, 6)
        reach = offset + 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        inside = 0 in shape or reach <= x.numel()
        try:
            total = x.as_strided(shape, stride, offset).sum()
        except RuntimeError:
            refused += 1
            assert not inside, (shape, stride, offset)
        else:
            assert inside and total == 0, (shape, stride, offset)
    return f"{size:,} views, {refused:,} refused"


def _any_number(chance: random.Random) -> int:
    """A size, stride or offset: small, or one at which 64 bits overflow."""
    if chance.random() < 0.7:
        return chance.randrange(-1, 6)
    return chance.choice((1, -1)) * (1 << chance.randrange(28, 66)) + chance.randrange(-1, 2)


@attack("sizes, strides and offsets that overflow reach no memory", small=1_000, large=30_000)
def overflowing_views(size: int) -> str:
    chance = random.Random(3)
    refused = read = 0
    aten = torch.ops.aten
    for _ in range(size):
        x = torch.arange(8, dtype=chance.choice((torch.int8, torch.float64)))
        shape = [_any_number(chance) for _ in range(chance.randrange(1, 3))]
        stride = [_any_number(chance) for _ in shape]
        offset = _any_number(chance)
        call = chance.choice(
            (
                lambda x, *where: x.as_strided(*where),
                lambda x, *where: x.as_strided_(*where),
                lambda x, shape, stride, offset: x.new_empty(0).set_(x, offset, shape, stride),
                lambda x, shape, stride, offset: x.new_empty(0).set_(x.untyped_storage(), offset, shape, stride),
                lambda x, shape, stride, offset: aten._reshape_alias(x, shape, stride),
                lambda x, shape, stride, offset: x.resize_(shape),
                lambda x, shape, stride, offset: x.unfold(0, shape[0], stride[0]),
                lambda x, shape, stride, offset: x.expand(*shape, 8),
                lambda x, shape, stride, offset: torch.empty_strided(shape, stride, dtype=x.dtype),
                lambda x, shape, stride, offset: x.narrow(0, offset, shape[0]),
                lambda x, shape, stride, offset: x[offset : shape[0] : stride[0]],
            )
        )
        try:
            view = call(x, shape, stride, offset)
        except (RuntimeError, TypeError, ValueError, IndexError, OverflowError):
            refused += 1
            continue
        if 0 < view.numel() < 10_000:
            read += len(view.flatten().tolist())
    return f"{size:,} views, {refused:,} refused, {read:,} read"


class _Model:
    """What tensors on shared storages must show: bytes of storages, and a place in one for every tensor."""

    def __init__(self) -> None:
        self.bytes: list[bytearray] = []
        self.views: list[tuple[int, int, tuple[int, ...], tuple[int, ...]]] = []  # storage, offset, shape, strides

    def places(self, view: int) -> Any:
        """The number of the storage, and the place in it of each element."""
        storage, offset, shape, strides = self.views[view]
        at = np.full(shape, offset)
        for dim, (n, step) in enumerate(zip(shape, strides, strict=True)):
            at += (np.arange(n) * step).reshape((-1,) + (1,) * (len(shape) - dim - 1))
        return storage, at

    def values(self, view: int) -> Any:
        storage, at = self.places(view)
        return np.frombuffer(bytes(self.bytes[storage]) or b"\0", np.uint8)[at]


@attack(
    "tensors that share a storage go on sharing it, whatever is resized, set or written", small=10, large=2_000, timeout_s=900
)
def shared_storages(size: int) -> str:
    chance = random.Random(4)
    steps = 0
    for _ in range(size):
        model, tensors = _Model(), []
        for _ in range(2):
            data = bytearray(chance.randbytes(chance.randrange(1, 9)))
            model.bytes.append(data)
            model.views.append((len(model.bytes) - 1, 0, (len(data),), (1,)))
            tensors.append(torch.tensor(list(data), dtype=torch.uint8))
        for _ in range(25):
            steps += 1
            _step(chance, model, tensors)
            for number, tensor in enumerate(tensors):
                expected = model.values(number)
                assert tuple(tensor.shape) == expected.shape, (tensor.shape, expected.shape)
                assert np.array_equal(tensor.numpy(), expected), (tensor, expected)
                assert tensor.untyped_storage().nbytes() == len(model.bytes[model.views[number][0]])
    return f"{size:,} programs, {steps:,} steps"


def _step(chance: random.Random, model: _Model, tensors: list[Any]) -> None:
    """One random operation on the tensors and on the model of them."""
    number = chance.randrange(len(tensors))
    tensor, (storage, offset, shape, strides) = tensors[number], model.views[number]
    size = tuple(chance.randrange(0, 5) for _ in range(chance.randrange(1, 3)))
    steps = tuple(chance.randrange(0, 4) for _ in size)
    start = chance.randrange(0, 6)
    row_major = tuple(int(np.prod(size[d + 1 :])) for d in range(len(size)))

    def grow(which: int, first: int, sizes: tuple[int, ...], by: tuple[int, ...]) -> None:
        reach = first + 1 + sum((n - 1) * s for n, s in zip(sizes, by, strict=True)) if 0 not in sizes else 0
        model.bytes[which].extend(bytes(max(0, reach - len(model.bytes[which]))))

    def clear_new(before: int) -> None:
        """New bytes are undefined: make them what the model has."""
        new = len(model.bytes[model.views[number][0]]) - before
        if new > 0:
            tensor.untyped_storage()[before : before + new] = 0

    kind = chance.choice(("view", "resize", "set", "write", "storage", "alias", "out"))
    if kind == "view" and len(tensors) < 8:
        try:
            view = tensor.as_strided(size, steps, start)
        except RuntimeError:
            assert start + 1 + sum((n - 1) * s for n, s in zip(size, steps, strict=True)) > len(model.bytes[storage])
            return
        tensors.append(view)
        model.views.append((storage, start, size, steps))
    elif kind == "alias" and len(tensors) < 8:
        tensors.append(chance.choice((lambda: tensor.data, tensor.detach, lambda: tensor[...]))())
        model.views.append((storage, offset, shape, strides))
    elif kind == "resize" and size != shape:
        before = len(model.bytes[storage])
        grow(storage, offset if tensor.numel() else tensor.storage_offset(), size, row_major)
        tensor.resize_(size)
        model.views[number] = (storage, tensor.storage_offset(), size, row_major)
        clear_new(before)
    elif kind == "set":
        other = chance.randrange(len(tensors))
        target = model.views[other][0]
        before = len(model.bytes[target])
        grow(target, start, size, steps)
        if chance.random() < 0.5:
            tensor.set_(tensors[other].untyped_storage(), start, size, steps)
        else:
            tensor.set_(tensors[other], start, size, steps)
        model.views[number] = (target, start, size, steps)
        clear_new(before)
    elif kind == "storage":
        # It may become smaller as long as no tensor looks beyond.
        length = chance.randrange(0, 20)
        before = len(model.bytes[storage])
        needed = max(int(model.places(v)[1].max(initial=-1)) + 1 for v in range(len(tensors)) if model.views[v][0] == storage)
        try:
            tensor.untyped_storage().resize_(length)
        except RuntimeError:
            assert length < needed, (length, needed)
            return
        assert length >= needed
        del model.bytes[storage][length:]
        model.bytes[storage].extend(bytes(max(0, length - before)))
        clear_new(before)
    else:
        value = chance.randrange(256)
        repeated = any(s == 0 and n > 1 for n, s in zip(shape, strides, strict=True)) and 0 not in shape
        places = model.places(number)[1].ravel()
        try:
            if kind == "out":
                torch.full(shape, value, dtype=torch.uint8).add(0, out=None)
                torch.add(torch.full(shape, value, dtype=torch.uint8), 0, out=tensor)
            else:
                tensor.copy_(torch.full(shape, value, dtype=torch.uint8))
        except RuntimeError as error:
            assert repeated and _REPEATED in str(error), (shape, strides, error)
            return
        assert not repeated, (shape, strides)
        for place in places:
            model.bytes[storage][place] = value


@attack("threads that read and write while others resize see whole tensors", small=5, large=300)
def resized_by_threads(size: int) -> str:
    x = torch.zeros(4)
    views = [x[1:3], x.data, x.detach()]
    done = threading.Event()
    errors: list[BaseException] = []
    read = 0

    def use() -> None:
        nonlocal read
        chance = random.Random(threading.get_ident())
        while not done.is_set():
            view = chance.choice(views)
            try:
                view.fill_(1.0)
                assert view.sum().isfinite() and view.max() <= 1
                read += 1
            except BaseException as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(size):
            x.resize_(5 + number % 50)
            x.zero_()
            x.untyped_storage().resize_(220 + 4 * (number % 70) if number % 2 else 300)
            x.resize_(4)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not errors, errors[0]
    assert all(view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for view in views)
    return f"{size:,} resizes beside {read:,} writes and reads of views"


# ---------------------------------------------------------------- targets of writes


def _out_samples(size: int, seed: int) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any], Any]]:
    """Ops with `out=`, the arguments of a sample, and the result without it."""
    import op_sampling as sampling

    specs = [s for s in sampling.all_specs() if not s.schema.mutates and not s.schema.is_view and s.out]
    random.Random(seed).shuffle(specs)
    for spec in specs[:size]:
        try:
            samples = sampling.samples_of(spec, sampling.Make())
        except sampling.NoSamples:
            continue
        for args, kwargs in samples:
            torch.manual_seed(0)
            try:
                result = spec(*args, **kwargs)
            except RuntimeError:  # made-up arguments that do not fit
                continue
            if isinstance(result, torch.Tensor) and not result.is_sparse and (_places(args) or _places(kwargs.values())):
                yield spec, args, kwargs, result


@attack("out= without memory, with repeated memory or of another size is refused or right", small=30, large=10_000)
def any_out(size: int) -> str:
    warnings.simplefilter("ignore")
    calls = refused = 0
    for spec, args, kwargs, result in _out_samples(size, 5):

        def call(out: Any, spec: Any = spec, args: Any = args, kwargs: Any = kwargs) -> str:
            nonlocal calls, refused
            calls += 1
            torch.manual_seed(0)
            try:
                spec(*args, **kwargs, out=out)
            except TypeError:  # takes no out=
                return "no"
            except RuntimeError as error:
                refused += 1
                return str(error)
            return ""

        name = spec.schema.full_name
        if call(torch.empty_like(result)) == "no":
            continue
        said = call(result.to("meta"))
        assert "cross-device copies are not allowed" in said or "device" in said, (name, said)
        if result.numel() > 1:
            target = result.flatten()[0].clone().expand(result.shape)
            said = call(target)
            # A product with a vector gives `out` another shape first, as in torch, and with it memory of its own.
            repeated = any(stride == 0 < size - 1 for size, stride in zip(target.shape, target.stride(), strict=True))
            assert _REPEATED in said or "out" in said or not repeated, (name, said)
        target = torch.empty(2, dtype=result.dtype)
        view = target[:1]
        if not call(target):
            assert target.shape == result.shape, (name, target.shape)
            assert torch.equal(view, target.flatten()[:1]) or not target.numel() or view.isnan().any(), (name, view, target)
    return f"{calls:,} calls, {refused:,} refused"


@attack("no op writes into repeated memory, but those that write one value", small=150, large=10_000)
def repeated_memory(size: int) -> str:
    import op_sampling as sampling

    warnings.simplefilter("ignore")
    specs = [s for s in sampling.all_specs() if s.schema.mutates and not s.composite]
    random.Random(6).shuffle(specs)
    calls = refused = 0
    for spec in specs[:size]:
        try:
            samples = sampling.samples_of(spec, sampling.Make())
        except sampling.NoSamples:
            continue
        for args, kwargs in samples:
            target = args[0]
            if not isinstance(target, torch.Tensor) or target.numel() < 2:
                continue
            base = target.flatten()[:1].clone()
            before = base.clone()
            calls += 1
            try:
                spec(base.expand(target.shape), *args[1:], **kwargs)
            except (RuntimeError, TypeError, IndexError):
                refused += 1
                assert torch.equal(base, before) or base.isnan().any(), spec.schema.full_name
    return f"{calls:,} in-place calls, {refused:,} refused"


@attack("versions are counted by threads without loss", small=2_000, large=200_000)
def versions_by_threads(size: int) -> str:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    rounds = max(1, size // 2_000)
    try:
        for _ in range(rounds):
            x, each = torch.zeros(8), size // rounds // 8
            one = torch.ones(8)
            begin = threading.Barrier(8)

            def write(kind: int, x: Any = x, one: Any = one, each: int = each, begin: Any = begin) -> None:
                begin.wait()
                for _ in range(each):
                    if kind % 4 == 0:
                        x.add_(1)
                    elif kind % 4 == 1:
                        x[:4].mul_(one[:4])
                    elif kind % 4 == 2:
                        torch.add(one, one, out=x)
                    else:
                        x.detach().zero_()

            threads = [threading.Thread(target=write, args=(kind,)) for kind in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert x._version == 8 * each, f"{x._version:,} of {8 * each:,} counted"
    finally:
        sys.setswitchinterval(interval)
    return f"{rounds * 8 * (size // rounds // 8):,} writes by 8 threads, all counted"


# ---------------------------------------------------------------- sizes


@attack("sizes beyond any memory raise torch's exceptions", small=300, large=30_000)
def huge_sizes(size: int) -> str:
    chance = random.Random(7)
    calls: list[Callable[[list[int]], Any]] = [
        lambda shape: torch.empty(shape),
        lambda shape: torch.zeros(shape),
        lambda shape: torch.ones(shape),
        lambda shape: torch.full(shape, 1),
        lambda shape: torch.rand(shape),
        lambda shape: torch.randn(shape),
        lambda shape: torch.randint(5, shape),
        lambda shape: torch.ones(1).new_empty(shape),
        lambda shape: torch.ones(1).expand(shape).clone(),
        lambda shape: torch.ones(1).expand(shape).contiguous(),
        lambda shape: torch.ones(1).expand(shape) + 1,
        lambda shape: torch.ones(1).expand(shape).double(),
        lambda shape: torch.ones(3).repeat(shape),
        lambda shape: torch.ones(1).resize_(shape),
        lambda shape: torch.zeros(1).new_zeros(shape),
        lambda shape: torch.empty(0).resize_(shape),
        lambda shape: torch.empty_strided(shape, [1] * len(shape)) if 0 in shape else torch.empty(shape),
        lambda shape: torch.arange(math.prod(shape)),
        lambda shape: torch.eye(math.prod(shape)),
        lambda shape: torch.UntypedStorage(math.prod(shape)),
        lambda shape: torch.FloatStorage(math.prod(shape)),
        lambda shape: torch.ones(1).untyped_storage().resize_(math.prod(shape)),
        lambda shape: torch.empty(shape, device="meta"),
        lambda shape: torch.nn.functional.pad(torch.ones(1), (0, math.prod(shape))),
        lambda shape: torch.nn.functional.one_hot(torch.tensor([0]), math.prod(shape)),
        lambda shape: torch.zeros(1).index_select(0, torch.zeros(1, dtype=torch.int64).expand(math.prod(shape))),
    ]
    refused = 0
    for _ in range(size):
        shape = [1 << chance.randrange(48, 65)]
        if chance.random() < 0.5:
            shape = [1 << chance.randrange(24, 34), 1 << chance.randrange(26, 34)]
        call = chance.choice(calls)
        try:
            made = call(shape)
            assert isinstance(made, torch.Tensor) and made.is_meta, (calls.index(call), shape)
        except (RuntimeError, TypeError, ValueError, OverflowError):
            refused += 1
    return f"{size:,} calls, {refused:,} refused"


# ---------------------------------------------------------------- routines of BLAS and LAPACK


@attack("factors, pivots and reflections of any kind keep BLAS and LAPACK inside their matrices", small=300, large=30_000)
def hostile_factors(size: int) -> str:
    warnings.simplefilter("ignore")
    chance = random.Random(8)
    torch.manual_seed(8)
    linalg = torch.linalg

    def some() -> int:
        return chance.choice((0, 1, 2, 3, 4, 40))

    def matrix(*shape: int) -> Any:
        made = torch.randn(shape).to(chance.choice((torch.float64, torch.float64, torch.complex64)))
        if chance.random() < 0.2 and len(shape) > 1:
            made = made.transpose(-1, -2).contiguous().transpose(-1, -2)
        if chance.random() < 0.1:
            made = made * math.nan
        return made[..., :1].expand(shape) if chance.random() < 0.1 and shape[-1] else made

    def pivots(*shape: int) -> Any:
        numbers = [chance.choice((0, -1, -2, -3, 1, 2, 3, 4, 40, -40, 2**31 - 1, -(2**31))) for _ in range(math.prod(shape))]
        return torch.tensor(numbers, dtype=torch.int32).reshape(shape)

    calls: list[Callable[[int], Any]] = [
        lambda n: linalg.ldl_solve(matrix(n, n), pivots(n), matrix(n, some()), hermitian=chance.random() < 0.5),
        lambda n: linalg.ldl_solve(matrix(3, n, n), pivots(3, n), matrix(3, n, some())),
        lambda n: linalg.lu_solve(matrix(n, n), pivots(n), matrix(n, some()), adjoint=chance.random() < 0.5),
        lambda n: linalg.lu_solve(matrix(2, n, n), pivots(2, some()), matrix(2, some(), n), left=False),
        lambda n: torch.lu_unpack(matrix(n, some()), pivots(n)),
        lambda n: linalg.householder_product(matrix(some(), n), matrix(some())),
        lambda n: torch.ormqr(matrix(n, some()), matrix(some()), matrix(n, some()), chance.random() < 0.5),
        lambda n: torch.cholesky_solve(matrix(n, some()), matrix(n, n), upper=chance.random() < 0.5),
        lambda n: linalg.solve_triangular(matrix(n, n), matrix(n, some()), upper=True, left=chance.random() < 0.5),
        lambda n: torch.triangular_solve(matrix(n, some()), matrix(n, n)),
        lambda n: linalg.lstsq(matrix(n, some()), matrix(n, some())),
        lambda n: linalg.ldl_factor(matrix(n, n)),
        lambda n: linalg.svd(matrix(some(), n)),
        lambda n: torch.baddbmm(matrix(2, n, some()), matrix(2, n, some()), matrix(2, some(), n)),
    ]
    refused = 0
    for _ in range(size):
        try:
            chance.choice(calls)(some())
        except (RuntimeError, TypeError, ValueError, IndexError):
            refused += 1
    return f"{size:,} calls, {refused:,} refused"
