"""Names that few programs ask for, and that do what torch's do."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.autograd.variable import Variable, VariableMeta
from mindtorch_v2.profiler import profile
from mindtorch_v2.utils import _pytree

TORCH_2_13 = [
    "aminmax",
    "cummax",
    "cummin",
    "frexp",
    "geqrf",
    "histogram",
    "kthvalue",
    "linalg_cholesky_ex",
    "linalg_eig",
    "linalg_eigh",
    "linalg_inv_ex",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_lstsq",
    "linalg_lu",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "linalg_qr",
    "linalg_slogdet",
    "linalg_solve_ex",
    "linalg_svd",
    "lu_unpack",
    "max",
    "median",
    "min",
    "mode",
    "nanmedian",
    "qr",
    "slogdet",
    "sort",
    "svd",
    "topk",
    "triangular_solve",
]


def test_all_return_types():
    """Each with its form of calls with `out=`, but for histogramdd."""
    kinds = torch.return_types.all_return_types
    assert [kind.__name__ for kind in kinds] == sorted(["histogramdd", *TORCH_2_13, *(f"{name}_out" for name in TORCH_2_13)])
    assert type(torch.max(torch.ones(2, 2), 0)) in kinds


def test_tuples_of_a_class_are_nodes_of_pytrees():
    class Results(tuple):
        pass

    torch.return_types.pytree_register_structseq(Results)
    leaves, spec = _pytree.tree_flatten([Results((1, 2))])
    assert leaves == [1, 2]
    [back] = _pytree.tree_unflatten([3, 4], spec)
    assert type(back) is Results and back == (3, 4)


def test_a_step_that_is_assigned_later_has_hooks_and_a_span():
    class Plain(torch.optim.Optimizer):
        def step(self):
            return None

    optimizer = Plain([torch.ones(2, requires_grad=True)], {})
    seen = []
    optimizer.register_step_pre_hook(lambda *args: seen.append("before"))
    optimizer.register_step_post_hook(lambda *args: seen.append("after"))
    step = torch.optim.Optimizer.profile_hook_step(lambda self: seen.append("step") or 7)
    with profile() as prof:
        assert step(optimizer) == 7
    assert seen == ["before", "step", "after"]
    assert [event.name for event in prof.events() if "Optimizer" in event.name] == ["Optimizer.step#Plain.step"]
    assert torch.optim.Optimizer.OptimizerPreHook and torch.optim.Optimizer.OptimizerPostHook


@pytest.mark.parametrize("given", [3, [1, 2], (1, 2), "ab"])
def test_an_integer_or_a_pair(given):
    assert nn.functional.assert_int_or_pair(given, "x", "m") is None


def test_neither_an_integer_nor_a_pair():
    with pytest.raises(AssertionError, match="^x must be one or two$"):
        nn.functional.assert_int_or_pair([1, 2, 3], "x", "{} must be one or two")


def test_set_module():
    made = type("Made", (), {})
    torch.utils.set_module(made, "somewhere.else")
    assert repr(made) == "<class 'somewhere.else.Made'>"
    with pytest.raises(TypeError, match="^The mod argument should be a string$"):
        torch.utils.set_module(made, 3)


def test_names_that_are_others():
    assert torch.fft.Tensor is nn.functional.Tensor is torch.Tensor
    assert nn.Module.T_destination.__bound__ == dict[str, __import__("typing").Any]
    assert type(Variable) is VariableMeta and isinstance(torch.ones(1), Variable)
    assert torch.cpu.amp.autocast_mode.autocast is torch.cpu.amp.autocast
    assert torch.cpu.amp.grad_scaler.GradScaler is torch.cpu.amp.GradScaler


# ---------------------------------------------------------------- storages

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")


@pytest.mark.parametrize(
    ("name", "of_bytes", "of_numbers"),
    [
        ("float8_e4m3fn", [1.0, 2.0, 256.0, 0.0], [1.0, 2.5, -288.0]),
        ("float8_e5m2", [1.0, 2.0, 256.0, 0.0], [1.0, 2.5, -320.0]),
        ("float8_e5m2fnuz", [1.0, 2.0, 256.0, 0.0], [1.0, 2.5, -320.0]),
        ("float8_e4m3fnuz", [1.0, 2.0, None, 0.0], [1.0, 2.5, None]),
    ],
)
def test_storages_as_eight_bit_floats(name, of_bytes, of_numbers):
    """What torch gives; nan where float8_e4m3fnuz has no such number."""
    for storage, expected in (
        (torch.UntypedStorage([1, 2, 250, 0]), of_bytes),
        (torch.tensor([1.0, 2.5, -300.0]).storage(), of_numbers),
    ):
        converted = getattr(storage, name)()
        assert converted.dtype is getattr(torch, name)
        assert [None if number != number else number for number in converted.tolist()] == expected


def test_typed_storages_of_buffers_and_files():
    values = torch.TypedStorage.from_buffer(b"1234", byte_order="little")
    assert values.dtype is torch.float32 and values.tolist() == [1.6688933612840628e-07]
    assert torch.TypedStorage.from_buffer(b"12", dtype=torch.uint8).tolist() == [49, 50]
    with pytest.raises(RuntimeError, match="function missing required argument 'byte_order'"):
        torch.TypedStorage.from_buffer(b"1234")
    with pytest.raises(RuntimeError, match="^TypedStorage.from_buffer: Not available for device meta$"):
        torch.TypedStorage.from_buffer(b"1234", byte_order="little", device="meta")
    with pytest.raises(RuntimeError, match="^from_file can only be called on derived classes$"):
        torch.TypedStorage.from_file("x", False, 3)


def test_storages_elsewhere():
    storage = torch.ones(2).storage()
    moved = storage.to(device="cpu")
    assert moved is not storage and moved.untyped() is storage.untyped()
    with pytest.raises(RuntimeError, match="^Cannot access accelerator device when none is available.$"):
        storage.untyped().pin_memory()
    with pytest.raises(TypeError, match="only CPU memory can be pinned"):
        torch.ones(2, device="meta").untyped_storage().pin_memory()
