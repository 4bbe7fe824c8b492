"""Sparse tensors of all layouts show what PyTorch 2.13 showed (see recorded_sparse.py), and travel."""

import io
import json

import pytest

import mindtorch_v2 as torch

from .recorded_sparse import RECORDED, SHOWN, answer

EXPECTED = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("code", SHOWN)
def test_shown(code):
    assert answer(code, torch) == EXPECTED[code]


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_saved_and_loaded(layout):
    made = torch.eye(4).to_sparse(layout=getattr(torch, f"sparse_{layout}"), blocksize=(2, 2) if layout[0] == "b" else None)
    buffer = io.BytesIO()
    torch.save({"a": made}, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer)["a"]
    assert loaded.layout is made.layout and repr(loaded) == repr(made)


def test_invariants_are_checked_where_asked():
    bad = ([1, 1, 2], [0, 1], [1.0, 2.0], (2, 2))
    torch.sparse_csr_tensor(*bad)
    with torch.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match=r"`crow_indices\[..., 0\] == 0`"):
        torch.sparse_csr_tensor(*bad)
    assert not torch.sparse.check_sparse_tensor_invariants.is_enabled()


def test_in_place_needs_a_sparse_operand():
    with pytest.raises(RuntimeError, match=r"add\(sparse, dense\) is not supported. Use add\(dense, sparse\) instead."):
        torch.eye(2).to_sparse().add_(torch.ones(2, 2))
    with pytest.raises(NotImplementedError, match="batches of compressed sparse tensors"):
        torch.ones(2, 2, 2).to_sparse_csr()
