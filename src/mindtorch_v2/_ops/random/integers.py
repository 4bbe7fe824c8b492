"""Random whole numbers: randint, random_, randperm, with torch's numbers."""

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.facts import Batching, Surface
from ..._dispatch.registry import aten, op
from .._support.common import no_kernel, np_dtype
from .._support.factory import LIKE, OPTIONS, as_made, check_options, checked_size, like
from .._support.out_rules import fills_out
from .._support.warn import warn
from .uniform_normal import LIKE_WITH_GENERATOR, WITH_GENERATOR, source_of, store

_I64 = np.dtype(np.int64)
_LONG = OPTIONS.replace("dtype=None", "dtype=long")
_LONG_WITH_GENERATOR = WITH_GENERATOR.replace("dtype=None", "dtype=long")
# A permutation of fewer numbers is made faster one by one: 50 in 5 us in place of 17 us, 1000 in 92 us in place of 50 us.
_FEW = 400
# The bits up to which a floating point type has every whole number: float64, float32, float16 and bfloat16.
_EXACT_BITS = {("f", 8): 53, ("f", 4): 24, ("f", 2): 11, ("V", 2): 8}


def _integers(count, source, low, span):
    """`count` whole numbers of [low, low + span), as int64."""
    if span == 2**64:
        return source.words64(count).view(np.int64)
    if span < 2**28:
        offsets = (source.words(count) % np.uint32(span)).astype(np.int64)
    else:
        offsets = (source.words64(count) % np.uint64(span)).view(np.int64)
    with np.errstate(over="ignore"):
        return offsets + np.int64(low) if low else offsets


def _check_bounds(kind, low, high):
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    limits = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max) if kind.kind in "iu" else None
    if limits is not None:
        name = dt.from_numpy(kind).cpp_name
        if not limits[0] <= low <= limits[1]:
            raise RuntimeError(f"from is out of bounds for {name}")
        if not limits[0] <= high - 1 <= limits[1]:
            raise RuntimeError(f"to - 1 is out of bounds for {name}")


def _warn_of_bounds(kind, low, high):
    """Warn of bounds between which a floating point dtype does not hold all whole numbers."""
    if kind.kind in "iub":
        return
    bits = _EXACT_BITS[kind.kind, kind.itemsize]
    name = dt.from_numpy(kind).cpp_name
    for bound, what in ((low, "from"), (high - 1, "to - 1")):
        if not -(2**bits) <= bound <= 2**bits:
            warn(
                f"{what} is out of bounds [-(2^{bits}), 2^{bits}]. Due to precision limitations {name} can support discrete "
                "uniform distribution only within this range. This warning will become an error in version 1.7 release, "
                "please fix the code in advance"
            )


def _whole_dtype(dtype):
    return _I64 if dtype == "int64" or dtype is None else np_dtype(dtype)


def _randint(low, high, size, kind, generator):
    _check_bounds(kind, low, high)
    size = checked_size(size)
    return _integers(math.prod(size), source_of(generator), low, high - low).astype(kind, copy=False).reshape(size)


def _recorded_randint(low, high, size, generator, dtype, layout, device, pin_memory):
    """The ops that torch makes random integers with."""
    kind = dt.from_numpy(_whole_dtype(dtype))
    made = aten.empty(size, dtype=kind, layout=layout, device=device, pin_memory=pin_memory)
    return as_made(aten.random_(made, low, high, generator=generator))


@op(
    f"randint.low(int low, int high, int[] size, {_LONG}) -> Tensor",
    nondiff=True,
    samples=lambda make: [],
    shape=lambda low, high, size, dtype, *_: (checked_size(size), _whole_dtype(dtype)),
    batching=Batching.RANDOM,
    host_made=True,
    out_rule=fills_out,
    recorded_form=lambda low, high, size, *options: _recorded_randint(low, high, size, None, *options),
)
def randint_low(low, high, size, dtype, layout, device, pin_memory):
    """Random integers from `low` up to but not including `high`.

    >>> torch.randint(0, 10, (3,))
    tensor([4, 9, 3])
    """
    check_options(layout, pin_memory)
    return _randint(low, high, size, _whole_dtype(dtype), None)


@op(
    f"randint(int high, int[] size, {_LONG}) -> Tensor",
    nondiff=True,
    samples=lambda make: [],
    shape=lambda high, size, dtype, *_: (checked_size(size), _whole_dtype(dtype)),
    batching=Batching.RANDOM,
    host_made=True,
    out_rule=fills_out,
    recorded_form=lambda high, size, *options: _recorded_randint(0, high, size, None, *options),
)
def randint(high, size, dtype, layout, device, pin_memory):
    check_options(layout, pin_memory)
    return _randint(0, high, size, _whole_dtype(dtype), None)


@op(
    f"randint.low_generator(int low, int high, int[] size, {_LONG_WITH_GENERATOR}) -> Tensor",
    nondiff=True,
    samples=lambda make: [],
    shape=lambda low, high, size, generator, dtype, *_: (checked_size(size), _whole_dtype(dtype)),
    batching=Batching.RANDOM,
    host_made=True,
    out_rule=fills_out,
    recorded_form=_recorded_randint,
)
def randint_low_generator(low, high, size, generator, dtype, layout, device, pin_memory):
    check_options(layout, pin_memory)
    return _randint(low, high, size, _whole_dtype(dtype), generator)


@op(
    f"randint.generator(int high, int[] size, {_LONG_WITH_GENERATOR}) -> Tensor",
    nondiff=True,
    samples=lambda make: [],
    shape=lambda high, size, generator, dtype, *_: (checked_size(size), _whole_dtype(dtype)),
    batching=Batching.RANDOM,
    host_made=True,
    out_rule=fills_out,
    recorded_form=lambda high, *rest: _recorded_randint(0, high, *rest),
)
def randint_generator(high, size, generator, dtype, layout, device, pin_memory):
    check_options(layout, pin_memory)
    return _randint(0, high, size, _whole_dtype(dtype), generator)


def _randint_like_ops(name, bounds):
    """`randint_like` in its forms: `bounds` are the schema's arguments between the tensor and the options."""
    count = len(bounds)

    def fill(self, limits, generator, dtype, memory_format):
        low, high = (0, *limits)[-2:]
        array = like(self, np_dtype(dtype, self.dtype), memory_format)
        _check_bounds(array.dtype, low, high)
        store(array, _integers(array.size, source_of(generator), int(low), int(high) - int(low)))
        return array

    def plain(self, *rest):
        dtype, layout, device, pin_memory, memory_format = rest[count:]
        check_options(layout, pin_memory, device)
        return fill(self, rest[:count], None, dtype, memory_format)

    def with_generator(self, *rest):
        generator, dtype, layout, device, pin_memory, memory_format = rest[count:]
        check_options(layout, pin_memory, device)
        return fill(self, rest[:count], generator, dtype, memory_format)

    def shape(at):
        return lambda self, *rest: (self._array.shape, np_dtype(rest[at], self._array.dtype))

    arguments = ", ".join(bounds)
    op(
        f"randint_like{name[0]}(Tensor self, {arguments}, {LIKE}) -> Tensor",
        plain,
        nondiff=True,
        shape=shape(count),
        samples=lambda make: [],
        batching=Batching.RANDOM,
        host_made=True,
        doc="""Random integers in a tensor like another one.

        >>> torch.randint_like(torch.zeros(2), 10)
        tensor([4., 9.])
        """,
    )
    op(
        f"randint_like{name[1]}(Tensor self, {arguments}, {LIKE_WITH_GENERATOR}) -> Tensor",
        with_generator,
        nondiff=True,
        shape=shape(count + 1),
        samples=lambda make: [],
        batching=Batching.RANDOM,
        host_made=True,
    )


_randint_like_ops((".low_dtype", ".low_generator_dtype"), ("int low", "int high"))
_randint_like_ops(("", ".generator"), ("int high",))


@op(
    "random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
    node="RandomBackward0",
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
)
def random_from(self, from_, to, generator):
    kind = self.dtype
    if to is not None:
        _check_bounds(kind, from_, to)
        _warn_of_bounds(kind, from_, to)
        span = to - from_
    elif kind.kind == "b":
        span = 2 - from_
    elif kind.kind in "iu":
        span = int(np.iinfo(kind).max) - from_ + 1
    else:
        span = 2 ** _EXACT_BITS[kind.kind, kind.itemsize] - from_ + 1
    store(self, _integers(self.size, source_of(generator), from_, span))


random_from.vjp(self=lambda g: aten.zeros_like(g))


@op(
    "random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
    node="RandomBackward1",
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
)
def random_to(self, to, generator):
    random_from.kernel(self, 0, to, generator)


random_to.vjp(self=lambda g: aten.zeros_like(g))


@op(
    "random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
    node="RandomBackward2",
    batching=Batching.RANDOM,
    host_made=True,
)
def random_(self, generator):
    """Every value that the dtype has, from 0 on: for floating point types as far as they have every whole number."""
    kind, source = self.dtype, source_of(generator)
    if (kind.kind == "u" and kind.itemsize > 1) or kind.kind == "c":
        raise no_kernel("random_kernel_cpu", kind)
    if kind.itemsize == 8:
        span = np.uint64(2**63 if kind.kind == "i" else 2**53 + 1)
        store(self, source.words64(self.size) % span)
    else:
        highest = (
            1 if kind.kind == "b" else np.iinfo(kind).max if kind.kind in "iu" else 2 ** _EXACT_BITS[kind.kind, kind.itemsize]
        )
        store(self, source.words(self.size) % np.uint32(int(highest) + 1))


random_.vjp(self=lambda g: aten.zeros_like(g))


def _permutation(n, kind, source):
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if kind.kind == "b":
        raise no_kernel("randperm", kind)
    if kind.kind in "iu" and n - 1 > np.iinfo(kind).max:
        raise RuntimeError(f"value cannot be converted to type {kind.name}_t without overflow")
    left = np.arange(n, 1, -1, dtype=np.uint32)
    others = source.words(max(n - 1, 0)) % left + np.arange(n - 1)
    return (_shuffled_one_by_one if n < _FEW else _shuffled)(n, others).astype(kind, copy=False)


def _shuffled_one_by_one(n, others):
    """The numbers below n after each place but the last was swapped, in order, with a place that is no lower."""
    order = list(range(n))
    for place, other in enumerate(others.tolist()):
        order[place], order[other] = order[other], order[place]
    return np.array(order, np.int64)


def _shuffled(n, others):
    """What `_shuffled_one_by_one` gives, without a loop over the places.

    A place gets what its other place has at that time. If that was swapped before, last with place p, it is what p had until
    then; and that came, if p was the other place of an earlier q, from q, and so on. So each place gets its other one, or the
    end of such a chain.
    """
    keys = others.astype(np.uint64) << np.uint64(32) | np.arange(n - 1, dtype=np.uint64)
    keys.sort()
    others, places = (keys >> np.uint64(32)).view(np.int64), (keys & np.uint64(0xFFFFFFFF)).view(np.int64)
    order = np.empty(n, np.int64)
    order[places] = others
    # Who a place was swapped with last before its own turn: itself, if with none.
    before = np.arange(n)
    is_swap = places != others
    before[others[is_swap]] = places[is_swap]
    again = others[1:] == others[:-1]
    ends = np.append(places[:-1][again], n - 1)
    going, at = np.arange(len(ends)), ends.copy()
    while going.size:
        following = before[at]
        ends[going] = following
        moves = following != at
        going, at = going[moves], following[moves]
    order[np.append(places[1:][again], n - 1)] = ends
    return order


@op(
    f"randperm(int n, {_LONG}, Generator? generator=None) -> Tensor",
    nondiff=True,
    samples=lambda make: [],
    shape=lambda n, dtype, *_: ((n,), _whole_dtype(dtype)),
    batching=Batching.RANDOM_BY_SAMPLE,
    host_made=True,
    out_rule=fills_out,
    handwritten=Surface.FUNCTION,
    generator_after_size=True,
)
def randperm(n, dtype, layout, device, pin_memory, generator):
    """The integers from 0 to `n - 1` in random order.

    >>> torch.randperm(4)
    tensor([0, 1, 3, 2])
    """
    check_options(layout, pin_memory)
    return _permutation(n, _whole_dtype(dtype), source_of(generator))


@op(
    f"randperm.generator(int n, {_LONG_WITH_GENERATOR}) -> Tensor",
    nondiff=True,
    samples=lambda make: [],
    shape=lambda n, generator, dtype, *_: ((n,), _whole_dtype(dtype)),
    batching=Batching.RANDOM_BY_SAMPLE,
    host_made=True,
    out_rule=fills_out,
    handwritten=Surface.FUNCTION,
    generator_after_size=True,
)
def randperm_generator(n, generator, dtype, layout, device, pin_memory):
    check_options(layout, pin_memory)
    return _permutation(n, _whole_dtype(dtype), source_of(generator))


FUNCTIONS = {"randperm": randperm.call}
