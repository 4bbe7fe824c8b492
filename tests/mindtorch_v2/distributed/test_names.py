"""Names of torch.distributed outside of its __all__: those that mean something here work, the others refuse at use."""

from __future__ import annotations

from importlib import import_module

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist

REFUSED = {
    "tensor": ["empty", "full", "ones", "rand", "randn", "zeros"],
    "_tensor": ["empty", "zeros"],
    "fsdp": ["DataParallelMeshDims", "register_fsdp_forward_method", "share_comm_ctx"],
}


@pytest.mark.parametrize("module, name", [(module, name) for module, names in REFUSED.items() for name in names])
def test_names_without_a_meaning_here_refuse_at_use(module, name):
    with pytest.raises(NotImplementedError, match=f"torch.distributed.*{name}"):
        getattr(import_module(f"mindtorch_v2.distributed.{module}"), name)(2)


def test_private_collectives_of_libraries_work():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        source, target = torch.arange(4.0), torch.zeros(4)
        with pytest.warns(FutureWarning):
            dist._all_gather_base(target, source)
        assert torch.equal(target, source)
        with pytest.warns(FutureWarning):
            dist._reduce_scatter_base(target, source * 2)
        assert torch.equal(target, source * 2)
        assert dist._get_process_group_name(dist.group.WORLD) == dist.group.WORLD.group_name
        assert not dist._rank_not_in_group(None)
    finally:
        dist.destroy_process_group()


def test_former_and_joined_names_are_the_same_objects():
    from mindtorch_v2.distributed import _tensor, algorithms, tensor

    assert all(getattr(_tensor, name) is getattr(tensor, name) for name in tensor.__all__)
    assert _tensor.__all__ == tensor.__all__
    assert algorithms.Join is import_module("mindtorch_v2.distributed.algorithms.join").Join
