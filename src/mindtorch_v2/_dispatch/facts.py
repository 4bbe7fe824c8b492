"""What a declaration may say of an op beside schema, kernel and derivative: the keywords of `op(...)` and `composite(...)`.

Everything that some room wants to know of one op by its name stands in the op's declaration, in these words. The rooms read
it from `OpSpec`: the dispatcher, vmap, autocast, devices, the profiler, the surface, `help()`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, Flag, StrEnum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

if TYPE_CHECKING:
    from .._core.dtype import dtype
    from .registry import OpSpec

Kernel = Callable[..., Any]
# (op, arguments, the tensor given as `out=`) -> the arguments to compute with, or an error.
OutRule = Callable[["OpSpec", tuple[Any, ...], Any], tuple[Any, ...]]
# (dtype of a result, dtype of the tensor given as `out=`): an error where the one cannot be stored in the other.
OutDtype = Callable[["dtype", "dtype"], None]


class Promotion(StrEnum):
    """How operands are brought to one dtype before the kernel sees them."""

    SAME = "same"  # torch's promotion                            add, mul
    FLOAT = "float"  # the same, and integers become floats       div, exp, sigmoid
    COMPARE = "compare"  # operands promoted, the result is bool  eq, lt
    NUMBER = "number"  # as SAME, and bools are refused           sub, rsub
    REAL = "real"  # as SAME, and complex ones are refused        maximum, fmin
    ONE = "one"  # none at all: all have one dtype                lerp
    WEIGHT = "weight"  # as ONE, but a last operand without dims takes part as in SAME: lerp with a tensor as its weight
    QUOTIENT = "quotient"  # as SAME, and integers are not divided by integers: addcdiv
    FITTING = "fitting"  # as SAME, but the kernel sees a number as it was given, to refuse what does not fit: where, pow


class Autocast(Enum):
    """What `torch.autocast` does to an op's arguments on the CPU."""

    LOWER = auto()  # run in the lower precision: products, where it pays
    FLOAT32 = auto()  # run in float32: what loses too much in fewer bits
    WIDEST = auto()  # run in the widest type among its inputs


class Batching(Enum):
    """How vmap runs an op over all samples at once. Without a word: element by element if the op promotes its operands,
    by a rule of its own in `func`, through its composition, else sample by sample.
    """

    SPATIAL_1D = 1  # works on batches of signals, images or volumes, or on one: samples join the batch
    SPATIAL_2D = 2
    SPATIAL_3D = 3
    POINTWISE = auto()  # element by element, although it does not promote
    BY_SAMPLE = auto()  # not element by element, although it promotes
    RANDOM = auto()  # what vmap's `randomness` says
    RANDOM_BY_SAMPLE = auto()  # the same, and a draw for each sample where they differ
    ALONG_DIM = auto()  # works along a dim of its first argument, which shifts by one
    REDUCTION = auto()  # reduces dims of its first argument, all of a sample's if none is named
    LAST_DIMS = auto()  # works on the last dims and takes any number before them
    LOSS = auto()  # element by element, then reduced for each sample
    GATHER = auto()  # an index of as many dims as the input, along one of them
    RESHAPE = auto()  # takes a size for all elements
    SIZED = auto()  # makes a tensor of a given size
    STRIDED = auto()  # each sample has memory of its own for it
    SHAPE_IN_PLACE = auto()  # the tensor stays the same object and gets another shape
    PRODUCT = auto()  # matrices times matrices
    ADDED_PRODUCT = auto()  # beta * self + alpha * a product


# The rules of ops that draw random numbers.
DRAWING = (Batching.RANDOM, Batching.RANDOM_BY_SAMPLE)
# The rules of ops on images, by the number of their dims.
SPATIAL = {1: Batching.SPATIAL_1D, 2: Batching.SPATIAL_2D, 3: Batching.SPATIAL_3D}


class Layout(Enum):
    """Where the elements of a fresh result lie. Without a word: as torch iterates over the operands if the op promotes them,
    or works element by element all the same, row-major if it is a reduction, else as the kernel left them, which for most ops
    is torch's way.
    """

    ROW_MAJOR = auto()  # the last dim innermost, whatever the operands
    IMAGES = auto()  # the same, but the channels lie next to each other if those of the first argument do
    VOLUMES = auto()  # the same for volumes, which may come one by one, without a batch
    INPUT_IMAGES = auto()  # the same by the second argument, which for a backward op is the input
    OPERANDS = auto()  # as torch iterates over the tensors among the arguments, although the op does not promote
    NOTED = auto()  # as the kernel left them; one that is not row-major gets its storage, so that the next op looks


class Surface(Flag):
    """Where an op is offered under its own name. Without a word: where torch has it, by the lists of `offered.py`."""

    FUNCTION = auto()  # torch.neg
    METHOD = auto()  # Tensor.neg; a hand-written method of that name goes before
    BOTH = FUNCTION | METHOD
    LAYER = auto()  # torch._C._nn.gelu
    MODULE = auto()  # torch._C._linalg.linalg_det
    ATEN = auto()  # torch.ops.aten.alias, and the rooms above the ops by `_surface`
    NONE = 0  # torch.ops.aten alone


class OutGrad(Enum):
    """Which tensors of a call with `out=` must not require grad. Without a word: any for an op with a derivative, else the one
    that is written, but for comparisons."""

    ANY = auto()  # operands and the tensor that is written
    WRITTEN = auto()  # a leaf that is written: torch has no word on the derivative, and what else it writes has one that raises
    NONE = auto()  # torch knows that there is no derivative


class Overlap(Enum):
    """Which operands an op refuses for the memory that they have in common with what it writes: in place, or into `out=`."""

    PART = auto()  # those that lie upon a part of it; the very same elements are read before they are written
    ANY = auto()  # those that lie upon any of it: elements are written in an order of their own
    EVERY = auto()  # the same, and the tensor that the op starts from, which the two others may write into


class ComplexError(NamedTuple):
    """What torch raises where an op does not know complex numbers; `{}` in the message is the op's name."""

    kind: type[Exception]
    message: str
    # Only the first operand is asked; what else is complex has no kernel.
    first: bool = False


class Facts(TypedDict, total=False):
    """The keywords of a declaration that most ops do without."""

    # What help() tells: one or two sentences and an example that runs. A kernel written as a function has it as its docstring.
    doc: str
    surface: Surface
    # Which of the two a family writes by hand, because it takes what a schema cannot say.
    handwritten: Surface
    # Second names that torch lists: each is an op of its own, recorded under the name it was called by.
    aliases: tuple[str, ...]
    # Orders in which torch still takes the arguments by position, with a warning: "self alpha other" of add.
    deprecated: tuple[str, ...]
    autocast: Autocast | dtype | None
    batching: Batching | None
    # How the result lies in memory.
    layout: Layout | None
    # Whether the function takes `out=`: one with a kernel and a fresh result does unless it says no, a composite if it says so.
    out: bool
    # What a composite does with `out=`: Tensor code that passes it on to the ops which write it. It takes the arguments in the
    # order of the schema, and then the tensor.
    out_form: Kernel
    # Which dtypes it may have: see `out_dtypes`. Without a word `castable` for an op that promotes several operands, `same` for
    # another one that works element by element, else `exact`.
    out_dtype: OutDtype
    out_grad: OutGrad
    # What else it asks of `out=`, and which arguments follow from it.
    out_rule: OutRule
    # The kernel of a call with `out=` for an op whose result depends on that dtype: it takes it as `dtype`, NumPy's, as well.
    out_kernel: Kernel
    # torch's name of the overload with `out=`, where it is not the plain one's with "_out" behind it.
    out_overload: str
    # No argument may be a number in place of a tensor.
    tensors_only: bool
    # The function takes a number for its first tensor: torch.mul(2, x).
    number_first: bool
    # torch iterates over the operands from the last to the first, which shows where a result lies.
    last_first: bool
    # A number may stand for the tensor that is written: x.copy_(2).
    number_source: bool
    # torch has an overload of its own for a number as the second operand, so that a profile knows the number.
    number_form: bool
    # While something records, a number becomes a tensor by the steps that torch shows.
    wraps_number: bool
    # A number, or a tensor without dims, keeps its digits beside half precision: the op computes in float32 and rounds once.
    wide_numbers: bool
    # What runs in the kernel's place while the calling thread records: Tensor code of the ops that torch's kernel calls, so
    # that a profile shows torch's tree. It takes the arguments in the order of the schema and gives the same result; that of an
    # op with a derivative leaves no history, since the op itself does.
    recorded_form: Kernel
    # That of the form which comes along by `inplace=True`.
    recorded_form_in_place: Kernel
    # The spec of the op that `recorded_form` calls where it does what the kernel does, and what that op gets behind the first
    # argument: on the short path a recording gets its row around the kernel, which takes less time than the call.
    inner_row: tuple[Any, tuple[Any, ...]]
    # From so many elements on threads share the work, which is done element by element in one pass; 0 where they never do.
    shared_from: int
    # Large arrays of half precision are computed in float32, in blocks, and rounded once: "V" for bfloat16 alone, "fV" for
    # float16, too.
    half_in_float32: str
    # The result shares the first argument's memory without being a view of it.
    shares_memory: bool
    # `__torch_dispatch__` of a subclass sees the op, although it is written as Tensor code.
    dispatched: bool
    # An integer tensor that is written into gets no history; that of other in-place ops does, in torch, too.
    stops_at_integers: bool
    # Gives the tensor itself another shape and writes nothing: where that is a view, its base keeps its history.
    reshapes: bool
    # torch has no history for an integer result of this op, and says so where an operand requires grad.
    refuses_integer_results: bool
    # Refuses to write into the memory that it reads: into a part of it, or into any.
    checks_overlap: Overlap | None
    # The derivative's function gets the gradients of all results, not that of the first.
    takes_all_grads: bool
    # How many of its results, from the first, the generated tests differentiate, where the others have no one answer.
    differentiable_results: int
    # Devices fill the result on the host and copy it over, by design: the numbers are those of the CPU.
    host_made: bool
    # torch has an overload without a generator, and one where it follows the size.
    generator_after_size: bool
    # torch passes None on for `pin_memory`, where other ops get False.
    pin_memory_stays_open: bool
    complex_error: ComplexError
    # torch's name of the kernel in '"..." not implemented for', where it is not the op's with "_cpu" behind it.
    kernel_name: str
    # torch's own profiler has a FLOP count for it, in the unit that its table chooses.
    torch_counts_flops: bool
