"""Random calls of the public API, as lines of Python: every op, function, method, property, module, optimizer, distribution.

A call is a text (`torch.add(torch.ones(2, 3), other=10**30)`), so that what it found is told by one line, which PyTorch can be
asked as well. Arguments fit their parameter's type more often than not; the others are of any type.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from types import ModuleType
from typing import Any

# ---------------------------------------------------------------- what a call is


@dataclass(frozen=True)
class Parameter:
    """A parameter of something that can be called."""

    name: str
    kind: str  # a schema's type ("Tensor", "int[]", "Scalar?"), or "" where nothing is known
    required: bool = True
    keyword_only: bool = False


@dataclass(frozen=True)
class Target:
    """Something to call: `head` and `tail` stand around the arguments."""

    name: str
    head: str
    parameters: tuple[Parameter, ...]
    tail: str = ")"
    method: bool = False  # the first argument stands before the head
    ending: str = ""  # what is done with the result, by the name of one of `ENDINGS`


@dataclass(frozen=True)
class Call:
    """A target with the texts of its arguments, each with its keyword or None."""

    target: Target
    arguments: tuple[tuple[str | None, str], ...]
    ending: str = "{}"

    @property
    def text(self) -> str:
        given = list(self.arguments)
        before = given.pop(0)[1] if self.target.method and given else ""
        listed = ", ".join(text if keyword is None else f"{keyword}={text}" for keyword, text in given)
        return self.ending.format(before + self.target.head + listed + self.target.tail)


# What may follow a call. Braces stand for the call.
GRADIENT = "(lambda r: r.sum().backward() if isinstance(r, torch.Tensor) and r.requires_grad else r)({})"
ENDINGS = {
    "": ["{}", "{}", "{}", "{}", "repr({})", GRADIENT],
    "module": [
        "{}",
        "{}(@)",
        "{}(@)",
        "{}(@)",
        "{}(@, @)",
        "{}(@).sum().backward()",
        "repr({})",
        "{}.state_dict()",
    ],
    "optimizer": ["{}.step()", "{}.step()", "{}.state_dict()", "repr({})", "{}.zero_grad()"],
    "distribution": [
        "{}.sample()",
        "{}.sample((2,))",
        "{}.rsample()",
        "{}.log_prob(@)",
        "{}.entropy()",
        "{}.cdf(@)",
        "{}.icdf(@)",
        "{}.mean",
        "{}.variance",
        "{}.mode",
        "repr({})",
        "{}.expand((3, 2))",
        "{}.enumerate_support()",
    ],
}

# ---------------------------------------------------------------- values

DTYPES = [
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
]
RARE_DTYPES = ["uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e5m2"]
SHAPES = [
    (),
    (0,),
    (1,),
    (2,),
    (3,),
    (2, 3),
    (3, 3),
    (1, 3),
    (3, 1),
    (2, 0),
    (0, 3),
    (2, 3, 4),
    (2, 2, 2),
    (2, 3, 3),
    (1, 1, 1),
    (2, 0, 3),
    (1, 2, 4, 4),
    (2, 3, 4, 5),
    (1, 2, 3, 3, 3),
]
INTEGERS = ["0", "1", "2", "3", "-1", "-2", "4", "5", "-3", "7"]
HUGE = ["2**31 - 1", "2**31", "-2**31 - 1", "2**40", "2**62", "2**63 - 1", "2**63", "-2**63", "-2**63 - 1", "2**64", "10**30"]
FLOATS = ["0.5", "1.0", "0.0", "-1.0", "2.5", "0.1", "-0.0", "1e-5", "3.0"]
FAR = ["inf", "-inf", "nan", "1e308", "-1e308", "5e-324", "1e30", "1e-30", "1e18", "65504.0", "3.4028234e38", "2**53 + 1.0"]
OTHERS = [
    "None",
    "True",
    "False",
    "'mean'",
    "''",
    "'nonsense'",
    "[]",
    "()",
    "[[]]",
    "[[1, 2], [3]]",
    "[1, 'a']",
    "{}",
    "{'a': 1}",
    "...",
    "slice(None)",
    "slice(1, None, 2)",
    "slice(None, None, -1)",
    "slice(2**70)",
    "1j",
    "complex('nan')",
    "(1 + 2j)",
    "object()",
    "print",
    "(lambda x: x)",
    "fails",
    "torch.float32",
    "torch.complex64",
    "torch.strided",
    "torch.device('cpu')",
    "torch.Generator()",
    "torch.Size([2, 3])",
    "torch.Tensor",
    "int",
    "float",
    "range(3)",
    "iter([1, 2])",
    "(i for i in range(2))",
    "b'ab'",
    "bytearray(8)",
    "np.float32(1.5)",
    "np.int64(2)",
    "np.uint8(255)",
    "np.bool_(True)",
    "np.array([1.0, 2.0])",
    "np.array(3)",
    "np.zeros((0, 2))",
    "np.array(['a'])",
    "np.array([None])",
    "np.datetime64('2020')",
    "{1, 2}",
    "torch.nn.Linear(2, 2)",
    "frozenset()",
    "'\\ud800'",
]
WORDS = [
    "'mean'",
    "'sum'",
    "'none'",
    "'fro'",
    "'nuc'",
    "'constant'",
    "'reflect'",
    "'replicate'",
    "'circular'",
    "'bilinear'",
    "'nearest'",
    "'bicubic'",
    "'trilinear'",
    "'linear'",
    "'area'",
    "'zeros'",
    "'border'",
    "'trunc'",
    "'floor'",
    "'ij'",
    "'xy'",
    "'relu'",
    "'gelu'",
    "'tanh'",
    "'reduced'",
    "'complete'",
    "'r'",
    "'left'",
    "'right'",
    "'ortho'",
    "'forward'",
    "'backward'",
    "'amax'",
    "'prod'",
    "'lower'",
    "'higher'",
    "'valid'",
    "'same'",
    "'batchmean'",
    "'L'",
    "'U'",
    "'ij,jk->ik'",
    "'i...->...'",
    "'ii'",
    "'...'",
    "'->'",
    "''",
    "'nonsense'",
]
DEVICES = ["'cpu'", "'meta'", "'cuda'", "torch.device('cpu')", "'npu'", "'nonsense'", "0", "'cpu:1'", "torch.device('meta')"]
FORMATS = ["torch.contiguous_format", "torch.channels_last", "torch.channels_last_3d", "torch.preserve_format"]
LAYOUTS = ["torch.strided", "torch.sparse_coo"]
SUBSCRIPTS = [
    "0",
    "-1",
    "...",
    "None",
    "True",
    "slice(None)",
    "slice(0, 1)",
    "slice(None, None, 2)",
    "slice(-2**70, 2**70)",
    "(0, ..., 0)",
    "(None, 0)",
    "(slice(None), [0, 0])",
    "[0, 1]",
    "[True, False]",
    "(..., ...)",
    "torch.tensor([0, -1])",
    "torch.tensor([True, False])",
    "torch.tensor(2**40)",
    "([0], [0])",
    "(slice(None), None, torch.tensor(0))",
    "2**63",
    "slice(None, None, 0)",
]


class Values:
    """Hands out the texts of random arguments. The tensors of one call have related shapes and dtypes."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.shape = random.choice(SHAPES)
        self.dtype = random.choice(DTYPES if random.random() < 0.97 else RARE_DTYPES)
        if random.random() < 0.4:
            self.dtype = "float32"

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, listed: list[str]) -> str:
        return listed[int(self.random.random() * len(listed))]

    def integer(self) -> str:
        return self.pick(HUGE) if self.chance(0.1) else self.pick(INTEGERS)

    def floating(self) -> str:
        return self.pick(FAR) if self.chance(0.2) else self.pick(FLOATS) if self.chance(0.8) else self.integer()

    def number(self) -> str:
        how = self.random.random()
        return (
            self.integer()
            if how < 0.4
            else self.floating()
            if how < 0.85
            else self.pick(["True", "1j", "np.float64(2)", "0-d"])
            if how < 0.95
            else self.pick(["np.int8(3)", "(nan+1j)"])
        )

    def integers(self) -> str:
        if self.chance(0.15):
            return self.integer()
        items = [
            self.integer() if self.chance(0.2) else self.pick(INTEGERS[:5])
            for _ in range(self.random.choice([0, 1, 1, 2, 2, 2, 3, 4]))
        ]
        opening, closing = ("[", "]") if self.chance(0.4) else ("(", ",)" if len(items) == 1 else ")")
        return opening + ", ".join(items) + closing

    def tensor(self) -> str:
        """A tensor of any kind; mostly of the call's shape and dtype."""
        random = self.random
        shape = list(self.shape if self.chance(0.65) else random.choice(SHAPES))
        if shape and self.chance(0.1):
            shape[random.randrange(len(shape))] = random.choice([0, 1, 2, 3, 4])
        dtype = self.dtype if self.chance(0.7) else random.choice(DTYPES)
        text = self.elements(shape, dtype)
        if self.chance(0.3):
            text = self.modified(text, shape, dtype)
        if self.chance(0.15) and dtype.startswith(("float", "bfloat", "complex")) and "float8" not in dtype:
            text = f"torch.nn.Parameter({text})" if self.chance(0.3) else f"{text}.requires_grad_()"
        return text

    def elements(self, shape: list[int], dtype: str) -> str:
        random, count = self.random, math.prod(shape)
        wanted = "" if dtype == "float32" else f", dtype=torch.{dtype}"
        how = random.random()
        if how < 0.3:
            return f"torch.{random.choice(['ones', 'zeros'])}({tuple(shape)}{wanted})"
        if how < 0.6:
            return f"torch.arange({-(count // 3)}, {count - count // 3}).to(torch.{dtype}).reshape({tuple(shape)})"
        if how < 0.75:
            return f"torch.linspace(0.1, 0.9, {count}).to(torch.{dtype}).reshape({tuple(shape)})"
        if dtype in ("bool", "float8_e4m3fn", "float8_e5m2"):
            return f"torch.ones({tuple(shape)}).to(torch.{dtype})"
        if dtype.startswith(("int", "uint")):
            size = int(re.sub(r"\D", "", dtype))
            low, high = (0, 2**size - 1) if dtype[0] == "u" else (-(2 ** (size - 1)), 2 ** (size - 1) - 1)
            return f"torch.full({tuple(shape)}, {random.choice([low, high, low + 1, high // 2])}{wanted})"
        if how < 0.9:
            value = random.choice(["nan", "inf", "-inf", "1e30", "-1e30", "1e-40", "-0.0"]).replace(
                "1e30", "60000." if "16" in dtype else "1e30"
            )
            return f"torch.full({tuple(shape)}, {value}{wanted})"
        listed = ([0.0, -0.0, 1.0, -1.0, 1e4, 1e-7, math.nan, math.inf, -math.inf, 2.5] * (count // 10 + 1))[:count]
        random.shuffle(listed)
        return f"torch.tensor({listed}{wanted or ', dtype=torch.float32'}).reshape({tuple(shape)})"

    def modified(self, text: str, shape: list[int], dtype: str) -> str:
        choices = [
            f"{text}[None].expand(2, {', '.join(['-1'] * len(shape))})" if shape else f"{text}.expand(2)",
            f"{text}.permute({', '.join(map(str, reversed(range(len(shape)))))})" if shape else f"{text}.view(1)",
            f"{text}[..., ::2]" if shape else f"{text}[None]",
            f"{text}.to('meta')",
            f"{text}.flip({list(range(len(shape)))})",
            f"{text}.to_sparse()" if dtype in ("float32", "float64", "int64") and shape else text,
            f"torch.ones(4, dtype=torch.{dtype}).as_strided((2, 2), (1, 1))",
            f"{text}.as_subclass(Subclass)",
            f"{text}.repeat_interleave(2)[::2].reshape({tuple(shape)})",
            f"torch.nn.Parameter({text}, requires_grad=False)",
            f"{text}.conj()" if dtype.startswith("complex") and dtype != "complex32" else f"{text}.detach()",
            f"{text}.narrow(0, 0, 0)" if shape else text,
        ]
        return self.random.choice(choices)

    def index(self) -> str:
        shape = self.shape if self.chance(0.6) else self.random.choice(SHAPES)
        return f"torch.{self.random.choice(['zeros', 'ones'])}({shape}, dtype=torch.int64)"

    def of(self, parameter: Parameter) -> str:
        """An argument that fits a parameter, more often than not."""
        if self.chance(0.06):
            return self.anything()
        kind = (parameter.kind or guessed_kind(parameter.name)).removesuffix("?")
        if re.search(
            "layers|iter$|ns_steps|max_eval", parameter.name
        ):  # how often to do something: many take long in torch, too
            return self.pick(INTEGERS)
        if parameter.kind.endswith("?") and self.chance(0.25):
            return "None"
        kind = re.sub(r"\[\d+\]", "[]", kind)
        make = _MAKERS.get(kind)
        return self.anything() if make is None else make(self)

    def anything(self) -> str:
        how = self.random.random()
        if how < 0.3:
            return self.tensor()
        if how < 0.4:
            return self.number().replace("0-d", "torch.tensor(2)")
        if how < 0.5:
            return self.integers()
        if how < 0.55:
            return self.tensors()
        return self.pick(OTHERS)

    def tensors(self) -> str:
        return "[" + ", ".join(self.tensor() for _ in range(self.random.choice([0, 1, 2, 2, 3]))) + "]"

    def dtype_text(self) -> str:
        return "torch." + (self.dtype if self.chance(0.4) else self.random.choice(DTYPES + RARE_DTYPES))

    def boolean(self) -> str:
        return self.pick(["True", "False"])


_MAKERS: dict[str, Callable[[Values], str]] = {
    "Tensor": lambda v: v.index() if v.chance(0.03) else v.tensor(),
    "index": lambda v: v.index() if v.chance(0.8) else v.tensor(),
    "mask": lambda v: f"torch.ones({v.shape}, dtype=torch.bool)" if v.chance(0.8) else v.tensor(),
    "Tensor[]": Values.tensors,
    "Tensor?[]": lambda v: "[" + ", ".join(v.pick(["None", v.index()]) for _ in range(v.random.randrange(4))) + "]",
    "int": lambda v: v.integer(),
    "SymInt": lambda v: v.integer(),
    "int[]": Values.integers,
    "float": lambda v: v.floating(),
    "float[]": lambda v: "[" + ", ".join(v.floating() for _ in range(v.random.randrange(4))) + "]",
    "Scalar": lambda v: v.number().replace("0-d", "torch.tensor(2)"),
    "Scalar[]": lambda v: "[" + ", ".join(v.number().replace("0-d", "2") for _ in range(v.random.randrange(4))) + "]",
    "bool": Values.boolean,
    "bool[]": lambda v: "[" + ", ".join(v.boolean() for _ in range(v.random.randrange(4))) + "]",
    "str": lambda v: v.pick(WORDS),
    "ScalarType": Values.dtype_text,
    "Device": lambda v: v.pick(DEVICES),
    "Layout": lambda v: v.pick(LAYOUTS),
    "MemoryFormat": lambda v: v.pick(FORMATS),
    "Generator": lambda v: v.pick(["torch.Generator()", "None"]),
    "subscript": lambda v: v.pick(SUBSCRIPTS) if v.chance(0.8) else v.anything(),
    "data": lambda v: v.anything(),
    "number or tensor": lambda v: v.tensor() if v.chance(0.6) else v.number().replace("0-d", "2"),
    "parameters": lambda v: (
        f"[{v.pick(['P()', 'P(2, 3)', 'P(3, dtype=torch.float64)', 'P(2, 2).detach()', 'P()'])}]"
        if v.chance(0.9)
        else v.anything()
    ),
    "optimizer": lambda v: "torch.optim.SGD([P()], lr=0.1)" if v.chance(0.95) else v.anything(),
    "function": lambda v: v.pick(
        ["(lambda x: x)", "(lambda *a: None)", "torch.sin", "(lambda e: 0.9)", "print", "(lambda x, *y: x * 2)"]
    ),
}

# What parameters of functions without a schema are called, in order: the first that fits.
_KINDS_BY_NAME = [
    (r"^(p|params|parameters)$", "parameters"),
    (r"^optimizer$", "optimizer"),
    (r"^(tensors|seq|sequences|arrays|operands|matrices|inputs)$", "Tensor[]"),
    (r"index|indices|target|offsets|lengths", "index"),
    (r"mask$", "mask"),
    (
        r"^(size|sizes|shape|dims?|axis|kernel_size|stride|padding|dilation|output_size|normalized_shape|pad|s|n)$|_size$|_padding$|_shape$",
        "int[]",
    ),
    (
        r"dim|num_|^n_|features|channels|groups|^k$|^N$|^M$|steps|levels|threads|size|diagonal|ratio|count|iter|epoch|step|milestone|embedding|period|order",
        "int",
    ),
    (
        r"^(p|eps|lr|momentum|alpha|beta|gamma|weight_decay|dampening|lambd|delta|margin|tol|atol|rtol|threshold|std|sigma|gain|rho|tau|slope|value|factor|cutoff|a|b)$|_val|lr|slope|decay|factor|tolerance",
        "Scalar",
    ),
    (
        r"mode|reduction|norm$|ord$|approximate|nonlinearity|equation|indexing|align|activation|descriptor|string|name|method",
        "str",
    ),
    (r"dtype", "ScalarType"),
    (r"device", "Device"),
    (r"memory_format", "MemoryFormat"),
    (r"layout", "Layout"),
    (r"generator", "Generator"),
    (r"^(func|fn|function|callable|hook|closure|lr_lambda|.*_fn|.*_function)$", "function"),
    (
        r"bias|affine|inplace|requires_grad|largest|sorted|keepdim|full|train|return|track|batch_first|ceil|include|pin|upper|out_of|foreach|maximize|nesterov|amsgrad|capturable|differentiable|fused|centered|elementwise|_is_|recompute|validate",
        "bool",
    ),
    (
        r"input|other|tensor|self|mat|vec|weight|^x\d?$|^y$|^A$|^B$|loc|scale|rate|prob|logits|concentration|mean|var|covariance|df|query|key|value|grad|out$|bound|low|high|total",
        "Tensor",
    ),
]
_GUESSES: dict[str, str] = {}


def guessed_kind(name: str) -> str:
    """The type of a parameter by its name, for functions without a schema; "" where the name says nothing."""
    if name not in _GUESSES:
        _GUESSES[name] = next((kind for pattern, kind in _KINDS_BY_NAME if re.search(pattern, name)), "")
    return _GUESSES[name]


# ---------------------------------------------------------------- targets

# These change the process (settings, seeds, files, other processes), or wait for somebody.
LEFT_OUT = re.compile(
    r"set_|use_|_set|_use|_lazy|import_|register_|hub|breakpoint|__init|__reduce|__new__|__class__|__getattr|__setattr|__delattr|"
    r"__(dir|del|subclasshook|sizeof|doc|dict|module|weakref|slots|setstate|getstate|annotations|deepcopy)__$|"
    r"(save|load|from_file|compile|seed|fork|wait|initial_seed|share_memory_|_keys|_array|_base|_storage|_node|_grad)$"
)


def declared(torch: ModuleType) -> dict[str, list[tuple[Parameter, ...]]]:
    """The parameters of every overload of every op, by the op's name."""
    from mindtorch_v2._dispatch import registry
    from mindtorch_v2._dispatch.schema import REQUIRED

    found: dict[str, list[tuple[Parameter, ...]]] = {}
    for name, packet in sorted(registry.packets.items()):
        if "::" in name:
            continue
        found[name] = [
            tuple(
                Parameter(a.python_name, re.sub(r"\(\w+!?\)", "", a.type_text), a.default is REQUIRED, a.keyword_only)
                for a in spec.schema.arguments
            )
            for spec in packet
        ]
    return found


def parameters_of(function: Any) -> tuple[Parameter, ...] | None:
    """The parameters by a function's signature, or None if it has none."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    found = []
    for p in signature.parameters.values():
        if p.kind is p.VAR_KEYWORD:
            continue
        kind = ""
        if isinstance(p.default, bool):
            kind = "bool"
        elif isinstance(p.default, str):
            kind = "str"
        elif isinstance(p.default, float):
            kind = "Scalar"
        elif isinstance(p.default, int):
            kind = "int"
        required = p.default is p.empty and p.kind is not p.VAR_POSITIONAL
        found.append(Parameter("" if p.kind is p.VAR_POSITIONAL else p.name, kind, required, p.kind is p.KEYWORD_ONLY))
    return tuple(found)


def _functions(torch: ModuleType, ops: dict[str, list[tuple[Parameter, ...]]]) -> Iterator[Target]:
    spaces = [
        "torch",
        "torch.special",
        "torch.linalg",
        "torch.fft",
        "torch.nn.functional",
        "torch.sparse",
        "torch.signal.windows",
    ]
    spaces += ["torch.nn.init", "torch.nn.utils", "torch.masked", "torch.nn.utils.rnn"]
    for space in spaces:
        module: Any = torch
        for part in space.split(".")[1:]:
            module = getattr(module, part)
        for name in sorted(dir(module) if space == "torch" else getattr(module, "__all__", None) or dir(module)):
            value = getattr(module, name, None)
            if LEFT_OUT.match(name) or not callable(value) or isinstance(value, type):
                continue
            if name.startswith("_") and space != "torch":
                continue
            if getattr(value, "__module__", "").startswith(("typing", "importlib", "contextlib")):
                continue
            path = f"{space}.{name}"
            for prefix in ("special_", "linalg_", "fft_", "") if space != "torch" else ("",):
                if prefix + name in ops and (prefix or space in ("torch", "torch.nn.functional")):
                    yield from (Target(path, f"{path}(", parameters) for parameters in ops[prefix + name])
                    break
            else:
                parameters = parameters_of(value)
                if parameters is not None:
                    yield Target(path, f"{path}(", parameters)
    for name, overloads in ops.items():
        if not hasattr(torch, name) or name.startswith("_"):
            yield from (Target(f"torch.ops.aten.{name}", f"torch.ops.aten.{name}(", each) for each in overloads)


def _methods(torch: Any, ops: dict[str, list[tuple[Parameter, ...]]]) -> Iterator[Target]:
    tensor = Parameter("self", "Tensor")
    for name in sorted(dir(torch.Tensor)):
        if LEFT_OUT.match(name):
            continue
        value = inspect.getattr_static(torch.Tensor, name, None)
        path = f"Tensor.{name}"
        if name in ("__getitem__", "__setitem__", "__delitem__"):
            rest = (Parameter("index", "subscript"), *[Parameter("value", "number or tensor")] * (name == "__setitem__"))
            yield Target(path, f".{name}(", (tensor, *rest), method=True)
        elif not callable(value) and not isinstance(value, classmethod | staticmethod):
            yield Target(path, f".{name}", (tensor,), tail="", method=True)
        elif name in ops:
            yield from (Target(path, f".{name}(", each, method=True) for each in ops[name] if each and each[0].kind == "Tensor")
        else:
            parameters = parameters_of(getattr(torch.Tensor, name))
            if parameters is None:
                parameters = (tensor,)
            if parameters and parameters[0].name in ("self", "tensor", "input", "first"):
                parameters = parameters[1:]
            if re.match(
                r"^__(r|i)?(add|sub|mul|truediv|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift|eq|ne|lt|le|gt|ge)__$", name
            ):
                parameters = (Parameter("other", "number or tensor"),)
            yield Target(path, f".{name}(", (tensor, *parameters), method=True)


def _classes(torch: Any) -> Iterator[Target]:
    for space, ending in (
        ("nn", "module"),
        ("optim", "optimizer"),
        ("optim.lr_scheduler", ""),
        ("distributions", "distribution"),
    ):
        module: Any = torch
        for part in space.split("."):
            module = getattr(module, part)
        for name in sorted(dir(module)):
            value = getattr(module, name, None)
            if name.startswith("_") or not isinstance(value, type):
                continue
            parameters = parameters_of(value)
            if parameters is not None:
                yield Target(f"torch.{space}.{name}", f"torch.{space}.{name}(", parameters, ending=ending)
    for name in (
        "Tensor",
        "Size",
        "device",
        "Generator",
        "UntypedStorage",
        "FloatTensor",
        "LongTensor",
        "FloatStorage",
        "finfo",
        "iinfo",
        "autocast",
    ):
        parameters = parameters_of(getattr(torch, name)) or (Parameter("data", "data", False),)
        yield Target(f"torch.{name}", f"torch.{name}(", parameters)


def targets(torch: Any) -> list[Target]:
    """Everything that calls are made of, in one order."""
    ops = declared(torch)
    return [*_functions(torch, ops), *_methods(torch, ops), *_classes(torch)]


# ---------------------------------------------------------------- calls


def random_call(choices: list[Target], seed: int, number: int) -> Call:
    """The call with that number: the same one for the same seed, whatever was called before."""
    random = Random(f"{seed}/{number}")
    target = choices[int(random.random() * len(choices))]
    values = Values(random)
    given: list[tuple[str | None, str]] = []
    by_name = False
    for place, parameter in enumerate(target.parameters):
        if not parameter.name:  # *args
            given += [(None, values.anything()) for _ in range(random.randrange(3)) if not by_name]
            continue
        if target.method and not place:
            given.append((None, values.tensor()))
            continue
        if (not parameter.required and random.random() < 0.6) or (parameter.required and random.random() < 0.02):
            by_name = True
            continue
        by_name = by_name or parameter.keyword_only or random.random() < 0.1
        given.append((parameter.name if by_name else None, values.of(parameter)))
    if target.tail and random.random() < 0.02:
        given.append(("out", values.tensor()) if random.random() < 0.7 or by_name else (None, values.anything()))
    keywords = [keyword for keyword, _ in given if keyword]
    if len(set(keywords)) < len(keywords):
        given = [(k, t) for i, (k, t) in enumerate(given) if k is None or k not in keywords[: keywords.index(k)]]
        seen: set[str] = set()
        given = [(k, t) for k, t in given if k is None or not (k in seen or seen.add(k))]  # type: ignore[func-returns-value]
    ending = random.choice(ENDINGS[target.ending])
    while "@" in ending:
        ending = ending.replace("@", values.tensor(), 1)
    return Call(target, tuple(given), ending.replace("{}", "\0").replace("{", "{{").replace("}", "}}").replace("\0", "{}"))


SIMPLE = [
    "None",
    "0",
    "1",
    "2",
    "-1",
    "1.0",
    "()",
    "(1,)",
    "(2, 2)",
    "torch.ones(())",
    "torch.ones(2)",
    "torch.ones(2, 2)",
    "torch.ones(0)",
]


def simpler(call: Call) -> Iterator[Call]:
    """Calls that are shorter by one step, to find the shortest that still fails."""
    if call.ending != "{}":
        yield replace(call, ending="{}")
    for place in reversed(range(len(call.arguments))):
        if not (call.target.method and place == 0):
            yield replace(call, arguments=call.arguments[:place] + call.arguments[place + 1 :])
    for place, (keyword, text) in enumerate(call.arguments):
        plain = [c for c in SIMPLE if c.startswith("torch")] if call.target.method and place == 0 else SIMPLE
        candidates = [*plain, *_unwrapped(text)]
        for candidate in candidates:
            if len(candidate) < len(text):
                changed = (*call.arguments[:place], (keyword, candidate), *call.arguments[place + 1 :])
                yield replace(call, arguments=changed)


def _unwrapped(text: str) -> Iterator[str]:
    """A tensor's text without what was done to it last."""
    if text.startswith("torch.nn.Parameter("):
        yield text.removeprefix("torch.nn.Parameter(").removesuffix(")").removesuffix(", requires_grad=False")
    if text.endswith(")") and "." in text:
        depth = 0
        for at in reversed(range(len(text))):
            depth += (text[at] == ")") - (text[at] == "(")
            if text[at] == "." and depth == 0 and at > 5:
                yield text[:at]
                break
