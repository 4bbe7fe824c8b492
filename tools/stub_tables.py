"""What `stubs.py` cannot read off: the forms of functions, methods and operators that no schema and no annotation describes."""

from __future__ import annotations

_FACTORY = "dtype: _dtype | None = None, device: _DeviceLike | None = None"
_UNIQUE = "sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None"
_RUNS = "return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None"
_TENSORS = "*tensors: Tensor | Sequence[Tensor]"
_AT_LEAST = (
    "(tensor: Tensor, /) -> Tensor",
    "(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]",
    "(first: Tensor, second: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]",
)

FUNCTION_FORMS = {
    "as_strided": (
        "(input: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor",
    ),
    "atleast_1d": _AT_LEAST,
    "atleast_2d": _AT_LEAST,
    "atleast_3d": _AT_LEAST,
    "block_diag": (f"({_TENSORS}) -> Tensor",),
    "broadcast_shapes": ("(*shapes: _int | Sequence[_int]) -> _Size",),
    "broadcast_tensors": (f"({_TENSORS}) -> tuple[Tensor, ...]",),
    "cartesian_prod": (f"({_TENSORS}) -> Tensor",),
    "cdist": ("(x1: Tensor, x2: Tensor, p: _float = 2.0, compute_mode: _str = ...) -> Tensor",),
    "chain_matmul": ("(*matrices: Tensor, out: Tensor | None = None) -> Tensor",),
    "einsum": ("(equation: _str, *operands: Tensor | Sequence[Tensor]) -> Tensor", "(*operands: Any) -> Tensor"),
    "get_rng_state": ("() -> Tensor",),
    "initial_seed": ("() -> _int",),
    "manual_seed": ("(seed: _int) -> _Generator",),
    "meshgrid": ("(*tensors: Tensor | Sequence[Tensor], indexing: _str | None = None) -> tuple[Tensor, ...]",),
    "nonzero": (
        "(input: Tensor, *, as_tuple: Literal[False] = False, out: Tensor | None = None) -> Tensor",
        "(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]",
    ),
    "norm": (
        "(input: Tensor, p: _float | _str | None = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False,"
        " out: Tensor | None = None, dtype: _dtype | None = None) -> Tensor",
    ),
    "seed": ("() -> _int",),
    "set_rng_state": ("(new_state: Tensor) -> None",),
    "split": ("(input: Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]",),
    "tensordot": (
        "(a: Tensor, b: Tensor, dims: _int | Tensor | Sequence[Sequence[_int]] = 2, out: Tensor | None = None) -> Tensor",
    ),
    "unique": (f"(input: Tensor, {_UNIQUE}) -> Any",),
    "unique_consecutive": (f"(input: Tensor, {_RUNS}) -> Any",),
    "where": (
        "(condition: Tensor) -> tuple[Tensor, ...]",
        "(condition: Tensor, input: Tensor | _Number, other: Tensor | _Number, *, out: Tensor | None = None) -> Tensor",
    ),
}

_TO = "non_blocking: _bool = False, copy: _bool = False, *, memory_format: _memory_format | None = None"

METHOD_FORMS = {
    "__array__": ("(self, dtype: Any = None, copy: _bool | None = None) -> np.ndarray[Any, Any]",),
    "as_strided": ("(self, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor",),
    "dense_dim": ("(self) -> _int",),
    "item": ("(self) -> _bool | _int | _float",),
    "new_tensor": (f"(self, data: Any, *, {_FACTORY}, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor",),
    "nonzero": (
        "(self, *, as_tuple: Literal[False] = False) -> Tensor",
        "(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]",
    ),
    "norm": (
        "(self, p: _float | _str | None = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False,"
        " dtype: _dtype | None = None) -> Tensor",
    ),
    "polygamma": ("(self, n: _int) -> Tensor",),
    "sparse_dim": ("(self) -> _int",),
    "split": ("(self, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]",),
    "sum_to_size": ("(self, *size: _int) -> Tensor", "(self, size: Sequence[_int], /) -> Tensor"),
    "to": (
        f"(self, dtype: _dtype, {_TO}) -> Tensor",
        f"(self, device: _DeviceLike | None = None, dtype: _dtype | None = None, {_TO}) -> Tensor",
        f"(self, other: Tensor, {_TO}) -> Tensor",
    ),
    "type": (
        "(self, dtype: None = None, non_blocking: _bool = False) -> _str",
        "(self, dtype: _str | _dtype | Any, non_blocking: _bool = False) -> Tensor",
    ),
    "unique": (f"(self, {_UNIQUE}) -> Any",),
    "unique_consecutive": (f"(self, {_RUNS}) -> Any",),
    "where": ("(self, condition: Tensor, other: Tensor | _Number) -> Tensor",),
}

_BINARY = "(self, other: Tensor | _Number) -> Tensor"
_UNARY = "(self) -> Tensor"

OPERATORS = {
    f"__{prefix}{name}__": _BINARY
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
    for prefix in ("", "r", "i")
}
OPERATORS |= {f"__{name}__": _BINARY for name in ("lt", "le", "gt", "ge", "rdiv")}
OPERATORS |= {f"__{name}__": _UNARY for name in ("abs", "invert", "neg", "pos")}
OPERATORS |= {f"__{name}__": "(self, other: Tensor) -> Tensor" for name in ("matmul", "rmatmul")}
OPERATORS |= {
    "__contains__": "(self, element: Any, /) -> _bool",
    "__eq__": "(self, other: Any) -> Tensor",
    "__getitem__": "(self, index: _Index) -> Tensor",
    "__hash__": "(self) -> _int",
    "__iter__": "(self) -> Iterator[Tensor]",
    "__len__": "(self) -> _int",
    "__repr__": "(self) -> _str",
    "__ne__": "(self, other: Any) -> Tensor",
    "__setitem__": "(self, index: _Index, value: Tensor | _Number) -> None",
}

PROPERTIES = {
    "name": "None",
    "H": "Tensor",
    "T": "Tensor",
    "data": "Tensor",
    "grad": "Tensor | None",
    "grad_dtype": "_dtype | None",
    "grad_fn": "_Node | None",
    "imag": "Tensor",
    "layout": "_layout",
    "mH": "Tensor",
    "mT": "Tensor",
    "real": "Tensor",
    "requires_grad": "_bool",
    "retains_grad": "_bool",
    "volatile": "_bool",
}
PROPERTIES |= {
    f"is_{name}": "_bool"
    for name in (
        *("cuda", "hpu", "ipu", "maia", "mkldnn", "mps", "mtia", "nested"),
        *("npu", "quantized", "sparse", "sparse_csr", "ve", "vulkan", "xla", "xpu"),
    )
}
