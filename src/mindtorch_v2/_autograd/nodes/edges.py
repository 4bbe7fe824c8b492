"""GradientEdge: an output of a node, which backward() and grad() accept in place of a tensor."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._core.keys import AUTOGRAD
from ..._core.tensor import Tensor
from .node import Edge, Node


class GradientEdge(NamedTuple):
    """The output `output_nr` of a node. It keeps the node alive, not the tensor."""

    node: Node
    output_nr: int
    # An object that has to live as long as the edge.
    ownership_token: Any = None


GradientEdge.__module__ = "mindtorch_v2.autograd.graph"


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge along which the gradient of a tensor arrives; RuntimeError if it does not require grad."""
    if not tensor._keys & AUTOGRAD:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, number = edge_of(tensor)
    return GradientEdge(node, number)


def edge_of(root: Tensor | GradientEdge) -> Edge:
    """Node and output number of a tensor with history, or of a GradientEdge."""
    if isinstance(root, GradientEdge):
        return root.node, root.output_nr
    return root._node, root._output_nr
