"""torch.nn.functional: layers and losses as functions."""

from __future__ import annotations

from .._core.tensor import Tensor
from .._dispatch.registry import aten
from .._lazy_imports import lazy_exports as _lazy_exports
from ..overrides import (
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)
from . import _reduction as _Reduction
from . import grad
from ._functional.activation import *  # noqa: F403
from ._functional.activation import _get_softmax_dim
from ._functional.attention import *  # noqa: F403
from ._functional.attention import (
    _canonical_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
)
from ._functional.grouped import *  # noqa: F403
from ._functional.linear_cross_entropy import *  # noqa: F403
from ._functional.loss import *  # noqa: F403
from ._functional.normalization import *  # noqa: F403
from ._functional.normalization import _verify_batch_size, _verify_spatial_size
from ._functional.pad import *  # noqa: F403
from ._functional.pooling import *  # noqa: F403
from ._functional.pooling import _unpool_output_size
from ._functional.resample import *  # noqa: F403
from ._functional.resample import _is_integer
from ._functional.sparse import *  # noqa: F403
from ._functional.sparse import _no_grad_embedding_renorm_
from ._sizes import _list_with_default, _pair, _single, _triple, assert_int_or_pair

# Functions that are an op and nothing more.
_OPS = {
    "bilinear": "bilinear",
    "channel_shuffle": "channel_shuffle",
    "conv1d": "conv1d",
    "conv2d": "conv2d",
    "conv3d": "conv3d",
    "conv_tbc": "conv_tbc",
    "conv_transpose1d": "conv_transpose1d",
    "conv_transpose2d": "conv_transpose2d",
    "conv_transpose3d": "conv_transpose3d",
    "cosine_similarity": "cosine_similarity",
    "gelu": "gelu",
    "hardshrink": "hardshrink",
    "linear": "linear",
    "logsigmoid": "log_sigmoid",
    "native_channel_shuffle": "native_channel_shuffle",
    "one_hot": "one_hot",
    "pairwise_distance": "pairwise_distance",
    "pdist": "pdist",
    "pixel_shuffle": "pixel_shuffle",
    "pixel_unshuffle": "pixel_unshuffle",
    "prelu": "prelu",
    "scaled_dot_product_attention": "scaled_dot_product_attention",
    "softplus": "softplus",
    "softshrink": "softshrink",
}
globals().update({name: getattr(aten, op) for name, op in _OPS.items()})

# Users find them here, and checkpoints of whole models name them so.
for _function in tuple(globals().values()):
    if getattr(_function, "__module__", "").startswith(f"{__package__}._functional."):
        _function.__module__ = __name__

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
