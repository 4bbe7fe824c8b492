"""NPU kernels, registered beside the CPU's: one file per family, each op by the operator of CANN that computes it."""

from . import copies, creation, index, matmul, normalization, optimizer, pointwise, pooling, reduction, softmax

__all__ = [
    "copies",
    "creation",
    "index",
    "matmul",
    "normalization",
    "optimizer",
    "pointwise",
    "pooling",
    "reduction",
    "softmax",
]
