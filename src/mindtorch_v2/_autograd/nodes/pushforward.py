"""Forward derivatives that ops declare (`op.jvp`), for the linear pass from which forward-mode AD takes its tangents.

See `backward.pullback`: a tangent is the derivative of a gradient by its seed. For an op that declares a jvp the pass makes no
gradient, but a zero whose node runs the declared formula when it is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core import dtype as dt
from ..._core.keys import AUTOGRAD
from ..._core.tensor import Tensor
from ..._core.threads import threads
from ..._dispatch.registry import aten
from ..graph import OpNode
from .node import Edge, Gradients, Node
from .saved import set_history


class Pushforward(Node):
    """The node of a gradient of an op's input, which is linear in the gradients of its outputs: backward takes a tangent of
    the input to tangents of the outputs."""

    __slots__ = ("formula", "numbers", "slots", "source")

    def __init__(
        self,
        source: OpNode,
        formula: Callable[..., Any],
        slots: tuple[int, ...],
        into: Edge,
        outputs: Sequence[tuple[int, Tensor]],
    ) -> None:
        state = threads.state
        self.source, self.formula, self.slots = source, formula, slots
        self.numbers = [number for number, _ in outputs]
        self.edges = tuple((grad._node, grad._output_nr) for _, grad in outputs)
        node, number = into
        self.inputs = node.inputs[number] if node.inputs.__class__ is list else node.inputs
        self.hooks = None
        self.sequence = state.sequence
        state.sequence += 1

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        if grads[0] is None:
            return [None] * len(self.edges)
        returned = self.formula(grads[0], *[self.source.unpacked(slot) for slot in self.slots])
        tangents = returned if isinstance(returned, tuple) else (returned,)
        return [tangents[number] for number in self.numbers]


def push(node: OpNode, grads: Any, retain: bool) -> Gradients:
    """`run` of an op's node with a declared jvp in a linear pass: zeros, each the output of a Pushforward."""
    arrived = grads if node.inputs.__class__ is list else [grads]
    outputs = [(number, grad) for number, grad in enumerate(arrived) if grad is not None and grad._keys & AUTOGRAD]
    results: Gradients = [None] * len(node.edges)
    if outputs:
        for position, formula, slots in node.plan.pushes:
            into = node.edges[position]
            assert into is not None
            pushforward = Pushforward(node, formula, slots, into, outputs)
            shape, np_dtype = pushforward.inputs
            zeros = aten.new_zeros(outputs[0][1], shape, dtype=dt.from_numpy(np_dtype))
            set_history(zeros, pushforward, 0)
            results[position] = zeros
    return results
