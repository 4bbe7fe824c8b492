"""MemoryProfile: categories of memory, inferred from the data flow, and what happened to it when."""

from __future__ import annotations

from typing import Any

from ....config import RecordScope
from ....store.memory_profile import Action, Category
from ....views.event_tree import _EventType
from .categories import CategoryDict
from .data_flow import DataFlowGraph, DataFlowNode, OpTree, SizeMap
from .tensor_keys import Key, TensorAndID, TensorKey, extract_gradients, extract_parameters, scopes_around

_BEFORE = -1  # the time of what was there before the recording


class MemoryProfile:
    """The memory of a recording that was made with record_shapes, profile_memory and with_stack.

    Each step of the constructor knows more than the one before: gradients and parameters that modules, optimizers and the
    autograd engine show; inputs, which nothing that was learned flows into; parameters by the way that they are used; and then
    activations, the state of optimizers, and what is left of the backward pass.
    """

    def __init__(self, result: Any) -> None:
        self._op_tree = OpTree(result)
        self._data_flow_graph = DataFlowGraph(self._op_tree)
        self._size_map = SizeMap(self._op_tree)
        self._categories = CategoryDict()
        self._set_gradients_and_temporaries()
        self._set_parameters_using_python_tracer()
        self._set_inputs()
        self._set_parameters_using_data_flow()
        self._set_activations()
        self._set_optimizer_state()
        self._set_autograd_detail()

    @property
    def timeline(self) -> tuple[tuple[int, Action, tuple[Key, int], int], ...]:
        """(time, action, (key, version), bytes) in order of time; times are nanoseconds since the epoch."""
        moments: dict[tuple[TensorKey, bool], int] = {}
        entries: list[tuple[int, Action, tuple[Key, int], int]] = []
        unknown: set[tuple[int, Any]] = set()
        for event in self._op_tree.dfs():
            tag, fields = event.typed
            if tag is not _EventType.Allocation:
                continue
            key, time, begins = TensorKey.from_allocation(fields), event.start_time_ns, fields.alloc_size > 0
            if key is not None:
                moments[key, begins] = time
                continue
            # No tensor was seen with this memory.
            entry, place = (Key(fields.device), 0), (fields.ptr, fields.device)
            if begins:
                action = Action.INCREMENT_VERSION if place in unknown else Action.CREATE
                unknown.add(place)
                entries.append((time, action, entry, fields.alloc_size))
            else:
                entries.append((time, Action.DESTROY, entry, -fields.alloc_size))
                if place not in unknown:
                    entries.append((_BEFORE, Action.PREEXISTING, entry, -fields.alloc_size))
                unknown.discard(place)
        entries += [(time, action, known, self._size_map[known[0]]) for time, action, known in _known_changes(self, moments)]
        return tuple(sorted(entries, key=lambda entry: (entry[0], entry[1].value)))

    def _is_gradient(self, key: TensorKey, version: int) -> bool:
        return self._categories.get(key, version) is Category.GRADIENT

    def _category_snapshot(self) -> dict[TensorAndID, Category | None]:
        """The category of every version of every piece of memory."""
        every: set[TensorAndID] = {(key, 0) for key in self._categories.keys_by_id}
        for node in self._data_flow_graph.flow_nodes:
            every |= _inputs(node)
            every |= {(key, 0) for key in node.intermediates}
            every |= set(node.outputs.items())
        return {pair: self._categories.get(*pair) for pair in sorted(every, key=_order)}

    def _any_version_depends_on_gradient(self) -> set[int]:
        """Ids of memory into which, in any version, gradients or parameters flow: found by going over the graph repeatedly.

        An op that reads something learned makes its other inputs no more learned, but all its outputs.
        """
        learned: set[int] = set()
        before = -1
        while len(learned) != before:
            before = len(learned)
            for node in self._data_flow_graph.flow_nodes:
                read = {
                    key.id
                    for key, version in _inputs(node)
                    if key.id in learned or self._categories.get(key, version) in (Category.GRADIENT, Category.PARAMETER)
                }
                if read:
                    learned |= read | {key.id for key in node.outputs}
        return learned

    # ------------------------------------------------------------------ the steps

    def _set_gradients_and_temporaries(self) -> None:
        """Gradients that modules, optimizers and AccumulateGrad show, and memory that an op makes and frees."""
        for event in self._op_tree.dfs():
            for _, gradient in extract_gradients(event):
                self._categories.set_by_id(gradient, Category.GRADIENT)
        for node in self._data_flow_graph.flow_nodes:
            for key in node.intermediates:
                self._categories.set_by_key(key, Category.TEMPORARY)

    def _set_parameters_using_python_tracer(self) -> None:
        """Parameters that modules and optimizers show."""
        for event in self._op_tree.dfs():
            for parameter in extract_parameters(event):
                self._categories.set_by_id(parameter, Category.PARAMETER)

    def _set_inputs(self) -> None:
        """Memory that contributes to gradients or parameters, was not made in the backward pass, and learned nothing."""
        learned = self._any_version_depends_on_gradient()
        contributes: set[TensorAndID] = set()
        for node in reversed(self._data_flow_graph.flow_nodes):
            around = _inputs(node) | set(node.outputs.items())
            if any(
                pair in contributes or self._categories.get(*pair) in (Category.GRADIENT, Category.PARAMETER) for pair in around
            ):
                contributes |= around
        for node in self._data_flow_graph.flow_nodes:
            if _is_backward(node):
                contributes -= set(node.outputs.items())
        for key, version in contributes:
            if key.id not in learned:
                self._categories.setdefault_by_version(key, version, Category.INPUT)

    def _set_parameters_using_data_flow(self) -> None:
        """Memory that forward ops take beside inputs, that contributes to a gradient, and that a gradient flows into."""
        snapshot = self._category_snapshot()
        forward = {pair for pair, category in snapshot.items() if category is Category.INPUT}
        candidates: set[TensorAndID] = set()
        for node in self._data_flow_graph.flow_nodes:
            read, written = _inputs(node), set(node.outputs.items())
            if not _is_backward(node) and read & forward and not any(self._is_gradient(*pair) for pair in read | written):
                forward |= written
                candidates |= read - forward
        contributes: set[TensorAndID] = set()
        for node in reversed(self._data_flow_graph.flow_nodes):
            if any(pair in contributes or self._is_gradient(*pair) for pair in node.outputs.items()):
                contributes |= _inputs(node)
        ids = {key.id for key, _ in candidates & contributes} & self._any_version_depends_on_gradient()
        for key, _ in snapshot:
            if key.id in ids:
                self._categories.set_by_id(key, Category.PARAMETER)

    def _set_activations(self) -> None:
        """Outputs of forward ops that take inputs or activations, and nothing else but parameters and temporaries."""
        carried = {Category.INPUT, Category.ACTIVATION}
        for node in self._data_flow_graph.flow_nodes:
            read = {self._categories.get(*pair) for pair in _inputs(node)}
            if read & carried and read <= carried | {Category.PARAMETER, Category.TEMPORARY} and not _is_backward(node):
                for pair in node.outputs.items():
                    self._categories.setdefault_by_version(*pair, Category.ACTIVATION)

    def _set_optimizer_state(self) -> None:
        """What optimizers show as their state."""
        for event in self._op_tree.dfs():
            tag, fields = event.typed
            if tag is _EventType.PyCall and fields.optimizer is not None:
                for _, _, state in fields.optimizer.parameters:
                    for key in (TensorKey.from_tensor(value) for _, value in state):
                        if key is not None:
                            self._categories.set_by_id(key, Category.OPTIMIZER_STATE)

    def _set_autograd_detail(self) -> None:
        """What is left of what the backward pass makes."""
        for node in self._data_flow_graph.flow_nodes:
            if _is_backward(node):
                for key, version in node.outputs.items():
                    if version == 0 or self._categories.get(key, version - 1) in (None, Category.AUTOGRAD_DETAIL):
                        self._categories.setdefault_by_version(key, version, Category.AUTOGRAD_DETAIL)


def _known_changes(profile: MemoryProfile, moments: dict[tuple[TensorKey, bool], int]) -> list[tuple[int, Action, TensorAndID]]:
    """What happened to memory that tensors were seen with; `moments` are those of allocations (True) and frees."""
    snapshot = profile._category_snapshot()
    last = dict(sorted(snapshot, key=_order))
    events = [
        (_BEFORE, Action.PREEXISTING, (key, version))
        for key, version in snapshot
        if version == 0 and (key, True) not in moments
    ]
    for node in profile._data_flow_graph.flow_nodes:
        for key, edge in node._edges.items():
            if edge.input_version is None:
                events.append((moments[key, True], Action.CREATE, (key, 0)))
            elif edge.mutated:
                events.append((node.start_time, Action.INCREMENT_VERSION, (key, edge.input_version)))
            if edge.is_deletion:
                events.append((moments[key, False], Action.DESTROY, (key, last[key])))
    return events


def _inputs(node: DataFlowNode) -> set[TensorAndID]:
    return {(key, version) for key, (_, version) in node.inputs.items()}


def _is_backward(node: DataFlowNode) -> bool:
    return RecordScope.BACKWARD_FUNCTION in scopes_around(node._event)


def _order(pair: TensorAndID) -> tuple[int, int, str, int]:
    return (*pair[0]._order, pair[1])
