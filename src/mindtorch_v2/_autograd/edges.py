"""GradientEdge: a place in the graph that backward() and grad() take where they take a tensor."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .node import Edge, Node


class GradientEdge(NamedTuple):
    """The output `output_nr` of a node. It keeps the node alive, not the tensor."""

    node: Node
    output_nr: int
    # Something that has to live as long as the edge is used.
    ownership_token: Any = None


GradientEdge.__module__ = "mindtorch_v2.autograd.graph"


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor that requires grad."""
    if not tensor._keys & AUTOGRAD:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, number = edge_of(tensor)
    return GradientEdge(node, number)


def edge_of(where: Tensor | GradientEdge) -> Edge:
    """Node and output number of a tensor with history, or of an edge."""
    if isinstance(where, GradientEdge):
        return where.node, where.output_nr
    return where._node, where._output_nr
