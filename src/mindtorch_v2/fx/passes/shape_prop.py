"""ShapeProp: runs a graph and notes the shape and dtype of every tensor in its node's metadata."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._core.dtype import dtype as DType
from ..._core.memory_format import channels_last, channels_last_3d, contiguous_format, memory_format
from ..._core.size import Size
from ..._core.tensor import Tensor
from ..interpreter import Interpreter
from ..node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Size
    dtype: DType
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    found = None
    for layout in (contiguous_format, channels_last, channels_last_3d) if include_contiguity else ():
        dims = {channels_last: 4, channels_last_3d: 5}.get(layout)
        if (dims is None or result.dim() == dims) and result.is_contiguous(memory_format=layout):
            found = layout
            break
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), found, False, {})


class ShapeProp(Interpreter):
    """Runs a GraphModule; afterwards each node has `meta["tensor_meta"]` and `meta["type"]`."""

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        found = False

        def note(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        metadata = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = metadata
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on some inputs."""
        return super().run(*args)
