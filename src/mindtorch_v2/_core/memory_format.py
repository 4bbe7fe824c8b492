"""Memory formats (the order of dims in memory), layouts (how a tensor stores its elements) and schemes of quantization."""

from __future__ import annotations

from typing import NoReturn, TypeVar

_Kind = TypeVar("_Kind", bound="_Named")


class _Named:
    """A value that is nothing but its name: one object per name, compared by identity, pickled by name."""

    __slots__ = ("_name",)
    _name: str

    def __new__(cls) -> _Named:
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    def __setattr__(self, attribute: str, value: object) -> NoReturn:
        raise AttributeError(f"'torch.{type(self).__name__}' object has no attribute '{attribute}'")

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name  # pickle looks this name up in the module of the class


class memory_format(_Named):
    """The order in which a tensor's dimensions lie in memory."""

    __module__ = "mindtorch_v2"

    __slots__ = ()


class layout(_Named):
    """How a tensor stores its elements: as a strided block, or in one of the sparse ways."""

    __slots__ = ()


class qscheme(_Named):
    """To what scales and zero points belong, and where zero lies, when numbers are mapped to a few integers."""

    __module__ = "mindtorch_v2"

    __slots__ = ()


def _declare(kind: type[_Kind], name: str) -> _Kind:
    value: _Kind = object.__new__(kind)
    object.__setattr__(value, "_name", name)
    return value


contiguous_format: memory_format = _declare(memory_format, "contiguous_format")
preserve_format: memory_format = _declare(memory_format, "preserve_format")
channels_last: memory_format = _declare(memory_format, "channels_last")
channels_last_3d: memory_format = _declare(memory_format, "channels_last_3d")
legacy_contiguous_format = contiguous_format

strided: layout = _declare(layout, "strided")
sparse_coo: layout = _declare(layout, "sparse_coo")
sparse_csr: layout = _declare(layout, "sparse_csr")
sparse_csc: layout = _declare(layout, "sparse_csc")
sparse_bsr: layout = _declare(layout, "sparse_bsr")
sparse_bsc: layout = _declare(layout, "sparse_bsc")
jagged: layout = _declare(layout, "jagged")
_mkldnn: layout = _declare(layout, "_mkldnn")

per_tensor_affine: qscheme = _declare(qscheme, "per_tensor_affine")
per_tensor_symmetric: qscheme = _declare(qscheme, "per_tensor_symmetric")
per_channel_affine: qscheme = _declare(qscheme, "per_channel_affine")
per_channel_symmetric: qscheme = _declare(qscheme, "per_channel_symmetric")
per_channel_affine_float_qparams: qscheme = _declare(qscheme, "per_channel_affine_float_qparams")
