"""torch.sparse.FloatTensor and the other legacy types of sparse tensors, by which older programs make adjacency matrices."""

from __future__ import annotations

from typing import Any

from ._core import dtype as dt
from ._core.memory_format import sparse_coo
from ._core.size import Size
from ._core.sparse import CompressedTensor, SparseTensor
from ._core.tensor import Tensor
from ._ops._support.warn import warn_once
from ._ops.sparse.coordinates import sparse_coo_tensor

__all__ = [f"{name}Tensor" for name in ("BFloat16", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")]


def _deprecated(form: str, instead: str) -> None:
    warn_once(f"torch.sparse.SparseTensor({form}) is deprecated.  Please use torch.sparse_coo_tensor({instead}).")


class _SparseType(type):
    """Names for sparse COO tensors of one dtype on the CPU: calling one makes such a tensor."""

    dtype: dt.dtype
    layout = sparse_coo
    is_sparse = True
    is_cuda = is_xpu = False

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        """Of indices, values and a size; of a size alone or of nothing, without entries. The dtype is that of the values."""
        if not args:
            _deprecated("", "(0,), dtype=")
            return sparse_coo_tensor((0,), dtype=cls.dtype, device=device)
        if 2 <= len(args) <= 3 and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
            _deprecated("indices, values, shape, *, device=", "indices, values, shape, dtype=, device=")
            return sparse_coo_tensor(*args, device=device)
        shape = args[0] if len(args) == 1 and isinstance(args[0], Size) else args
        if all(hasattr(size, "__index__") for size in shape):
            _deprecated("shape, *, device=", "shape, dtype=, device=")
            return sparse_coo_tensor(tuple(int(size) for size in shape), dtype=cls.dtype, device=device)
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({', '.join(type(a).__name__ for a in args)}), but "
            "expected one of:\n * (*, torch.device device = None)\n * (Tensor indices, Tensor values, *, torch.device device "
            "= None)\n * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)\n * (tuple of ints "
            "size, *, torch.device device = None)\n"
        )

    def __instancecheck__(cls, instance: Any) -> bool:
        sparse = isinstance(instance, SparseTensor) and not isinstance(instance, CompressedTensor)
        return sparse and instance.dtype is cls.dtype and instance.device.type == "cpu"

    def __repr__(cls) -> str:
        return f"<class 'torch.sparse.{cls.__name__}'>"


_BY_NAME = {f"{d.scalar_name}Tensor": d for d in dt.DTYPES.values()}
globals().update({name: _SparseType(name, (), {"dtype": _BY_NAME[name], "__module__": "torch.sparse"}) for name in __all__})
