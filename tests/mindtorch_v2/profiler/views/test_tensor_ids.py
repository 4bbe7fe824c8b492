"""Tensors in the event tree: which one, whose memory, and what modules and optimizers hold."""

from __future__ import annotations

import gc

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._C import _profiler as native
from mindtorch_v2.profiler import _utils, profile

MEMORY = {"record_shapes": True, "profile_memory": True}


def nodes(prof):
    return list(_utils.traverse_dfs(prof.profiler.kineto_results.experimental_event_tree()))


def find(prof, name):
    return next(node for node in nodes(prof) if node.name == name)


def allocations(prof):
    found = sorted((n for n in nodes(prof) if n.tag is native._EventType.Allocation), key=lambda n: n.start_time_ns)
    return [(n.extra_fields.id, n.extra_fields.allocation_id, n.extra_fields.alloc_size > 0) for n in found]


def test_views_share_memory_and_resizing_keeps_the_id():
    a, c = torch.ones(4, 3), torch.ones(4, 1)
    b = a.view(1, 12)
    pointer = a.untyped_storage().data_ptr()
    with profile(**MEMORY) as prof:
        _ = a + c
        _ = b * c
        torch.relu(a.resize_(128, 129))
    added, scaled, passed = (find(prof, f"aten::{name}").extra_fields.inputs for name in ("add", "mul", "relu"))
    assert added[0].storage_data_ptr == scaled[0].storage_data_ptr == pointer
    assert added[0].impl_ptr == a._cdata != scaled[0].impl_ptr == b._cdata
    assert added[0].allocation_id == scaled[0].allocation_id
    assert (added[1].id, added[1].impl_ptr) == (scaled[1].id, scaled[1].impl_ptr) != (added[0].id, added[0].impl_ptr)
    assert passed[0].id == added[0].id and passed[0].impl_ptr == added[0].impl_ptr
    assert passed[0].storage_data_ptr != pointer and passed[0].allocation_id != added[0].allocation_id


def test_metadata_of_a_tensor():
    x = torch.ones(10, 10).as_strided([4, 4], [12, 3])
    sparse = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3, 4, 5], (2, 3))
    with profile(**MEMORY) as prof:
        _ = x + 1
        _ = sparse + sparse
    dense, number, _ = find(prof, "aten::add").extra_fields.inputs
    assert (dense.sizes, dense.strides, dense.dim, dense.dtype) == ([4, 4], [12, 3], 2, torch.float32)
    assert (dense.layout, dense.device) == (torch.strided, torch.device("cpu"))
    assert number.id is None  # a number has no memory
    other = [n for n in nodes(prof) if n.name == "aten::add"][1].extra_fields.inputs[0]
    assert (other.sizes, other.strides, other.layout) == ([2, 3], [], torch.sparse_coo)


def test_lists_of_tensors():
    x, y = torch.ones(1), torch.ones(1)
    with profile(**MEMORY) as prof:
        torch.stack((x, y))
    first, second = find(prof, "aten::stack").extra_fields.inputs[0]
    assert (first.impl_ptr, second.impl_ptr) == (x._cdata, y._cdata) and first.id != second.id


def test_without_memory_there_are_no_numbers():
    with profile(record_shapes=True) as prof:
        torch.ones(1).neg()
    noted = find(prof, "aten::neg").extra_fields.inputs[0]
    assert (noted.id, noted.allocation_id, noted.impl_ptr, noted.storage_data_ptr) == (None,) * 4
    assert noted.layout is torch.strided and noted.sizes == [1]


def test_memory_and_its_free_have_one_number_and_addresses_that_are_used_again_another():
    gc.collect()
    with profile(**MEMORY) as prof:
        for _ in range(20):
            x = torch.ones(3)
            x.neg_()
            del x
    found = allocations(prof)
    assert [each[2] for each in found] == [True, False] * 20
    assert [each[:2] for each in found] == [(n, n + 1) for n in range(20) for _ in range(2)]


def test_memory_that_no_tensor_was_seen_with_has_no_id():
    with profile(**MEMORY) as prof:
        torch.empty(3)
    assert allocations(prof) == [(None, 1, True), (None, 1, False)]


def given(prof, name):
    """id and allocation_id of the first input of every op of a name."""
    inputs = [n.extra_fields.inputs[0] for n in nodes(prof) if n.name == name]
    return [(each.id, each.allocation_id) for each in inputs]


def test_an_op_that_gives_a_tensor_other_memory_was_given_the_old_one():
    def profiled():
        x = torch.ones(1)
        x.set_()
        x.set_(torch.ones(1).untyped_storage())
        x.resize_(3)
        return x.view_as(x)

    with profile(**MEMORY) as prof:
        profiled()
    # Memory of no bytes, which has number 3, is no allocation; a tensor keeps its id through all of them.
    assert allocations(prof) == [(0, 1, True), (0, 1, False), (0, 2, True), (0, 4, True), (0, 2, False), (0, 4, False)]
    assert given(prof, "aten::set_") == [(0, 1), (0, 3)]
    assert given(prof, "aten::resize_") == [(0, 2)] and given(prof, "aten::view_as") == [(0, 4)]


def test_tensors_that_ended_share_no_address():
    with profile(**MEMORY) as prof:
        for _ in range(20):
            torch.ones(1)
        kept = torch.ones(1)
    addresses = [n.extra_fields.inputs[0].impl_ptr for n in nodes(prof) if n.name == "aten::fill_"]
    assert len(set(addresses)) == 21 and addresses[-1] == kept._cdata


def test_modules_show_their_parameters_as_at_their_first_call():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    net(torch.ones(2)).sum().backward()
    with profile(with_stack=True, profile_memory=True) as prof:
        net(torch.ones(2))
    linear = find(prof, "nn.Module: Linear_0").extra_fields.module
    assert (linear.cls_name, linear.self_ptr, linear.cls_ptr) == ("Linear", id(net[0]), id(nn.Linear))
    pointers = [(name, p.storage_data_ptr, grad.storage_data_ptr) for name, p, grad in linear.parameters]
    assert pointers == [
        (name, p.untyped_storage().data_ptr(), p.grad.untyped_storage().data_ptr()) for name, p in net[0].named_parameters()
    ]
    assert find(prof, "nn.Module: ReLU_0").extra_fields.module.parameters == []


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_optimizers_show_their_state_as_after_their_first_step(kind):
    net = nn.Linear(2, 1)
    options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
    optimizer = kind(net.parameters(), lr=0.1, **options)
    with profile(with_stack=True, **MEMORY) as prof:
        net(torch.ones(2)).backward()
        optimizer.step()
        net.weight.grad.tan()
    node = next(n for n in nodes(prof) if n.name.endswith("_optimizer_step_code"))
    shown = node.extra_fields.optimizer
    assert shown.self_ptr == id(optimizer) and node.extra_fields.module is None
    for parameter, (noted, gradient, state) in zip(net.parameters(), shown.parameters, strict=True):
        assert noted.impl_ptr == parameter._cdata and gradient.impl_ptr == parameter.grad._cdata
        assert {name: value.impl_ptr for name, value in state} == {
            name: value._cdata for name, value in optimizer.state[parameter].items()
        }
    assert shown.parameters[0][1].id == find(prof, "aten::tan").extra_fields.inputs[0].id
    assert shown.parameters[0][0].id == find(prof, "aten::linear").extra_fields.inputs[1].id


def test_events_of_two_trees_of_one_recording_are_equal():
    with profile() as prof:
        torch.ones(1)
    results = prof.profiler.kineto_results
    assert results.experimental_event_tree() == results.experimental_event_tree()
