"""What PyTorch 2.13 shows for sparse tensors of all layouts; `python recorded_sparse.py` writes it, with PyTorch installed."""

from __future__ import annotations

import json
from pathlib import Path

RECORDED = Path(__file__).with_name("recorded_sparse.json")
PREPARE = """
x = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
coo, csr, csc = x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc()
bsr, bsc = torch.ones(2, 4).to_sparse_bsr((1, 2)), torch.eye(4).to_sparse_bsc((2, 2))
hybrid = torch.arange(8.0).view(2, 2, 2).to_sparse(1)
loose = torch.sparse_coo_tensor([[0, 0, 1], [2, 2, 0]], [1.0, 2.0, 3.0], (2, 3))
v = torch.tensor([1.0, 2.0], requires_grad=True)
"""
INDICES = "torch.sparse_csr_tensor({}, {}, [1.0, 2.0], (2, 2), check_invariants=True)"
SHOWN = [
    *("coo", "csr", "csc", "bsr", "bsc", "hybrid", "loose", "loose.coalesce()", "x.to_sparse(1)"),
    *(f"{one}.layout" for one in ("x", "coo", "csr", "csc", "bsr", "bsc")),
    *(f"({one}.is_sparse, {one}.is_sparse_csr, {one}._nnz(), {one}.shape)" for one in ("coo", "csr", "csc", "bsr")),
    *(f"{one}.{part}()" for one in ("csr", "csc", "bsr", "coo", "x") for part in ("crow_indices", "row_indices", "values")),
    *("csr.indices()", "csr.coalesce()", "csc.ccol_indices()", "csr.col_indices()", "hybrid.to_sparse(2)"),
    *(f"{one}.to_dense()" for one in ("coo", "csr", "csc", "bsr", "bsc", "hybrid", "loose")),
    *("csr.to_sparse_csc()", "csc.to_sparse_csr()", "bsr.to_sparse()", "csr.to_sparse_bsr((1, 3))", "coo.to_sparse_csr()"),
    *("x.to_sparse(layout=torch.sparse_csc)", "csr.to_sparse()", "x.to_sparse_bsr((2, 2))"),
    *(f"{one} @ torch.ones(3, 2)" for one in ("coo", "csr", "csc", "loose")),
    *(
        "csr @ torch.ones(3)",
        "torch.sparse.mm(csr, torch.ones(3, 2))",
        "torch.sparse.addmm(torch.ones(2, 2), csr, torch.ones(3, 2))",
    ),
    *(
        "torch.sin(csr)",
        "csr * 2",
        "csr + csr",
        "csr.neg()",
        "csr.t().layout",
        "csr.t()",
        "csr.clone()",
        "csr.sum()",
        "csr.abs()",
    ),
    *("csr.to(torch.float64)", "csr.detach()", "bsr.to_dense().to_sparse_csr()", "csc.relu()"),
    *(
        f"torch.{name}(coo)"
        for name in ("sin", "relu", "sqrt", "tanh", "neg", "abs", "floor", "sign", "expm1", "log1p", "isnan")
    ),
    *("torch.sin(loose)", "coo.pow(2)", "coo.sum(0)", "coo.sum()", "coo.sum(1)", "coo[0]", "coo[1, 2]", "coo.unsqueeze(0)"),
    *("hybrid.unsqueeze(2)", "hybrid[0]", "coo.select(1, 2)", "hybrid.sparse_dim(), hybrid.dense_dim()"),
    *("coo.clone().add_(coo)", "coo.clone().mul_(2)", "coo.clone().sub_(coo, alpha=3)", "coo.clone().zero_()", "coo + coo"),
    *("torch.tensor(3.0).to_sparse().t().shape", "torch.tensor([3.0]).to_sparse().t().shape", "coo.t()", "coo.transpose(0, 1)"),
    *("torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0])", "torch.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0]]])"),
    "torch.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], layout=torch.sparse_csc)",
    "torch.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0])",
    "torch.sparse_csr_tensor([1, 1, 2], [0, 1], [1.0, 2.0], (2, 2))",
    *(INDICES.format(*pair) for pair in (("[1, 1, 2]", "[0, 1]"), ("[0, 1, 3]", "[0, 1]"), ("[0, 1, 2]", "[0, 5]"))),
    *(INDICES.format(*pair) for pair in (("[0, 2, 2]", "[1, 0]"), ("[0, 2, 1]", "[1, 0]"), ("[0, 3, 2]", "[1, 0]"))),
    *("torch.sparse.softmax(coo, 1)", "torch.sparse.softmax(coo, 0)", "torch.sparse.log_softmax(loose, 1)"),
    *(
        "torch.sparse.softmax(hybrid, 0)",
        "torch.sparse.softmax(hybrid, 1)",
        "torch.sparse.sum(coo)",
        "torch.sparse.sum(coo, 0)",
    ),
    "torch.sparse.spdiags(torch.arange(6.0).view(2, 3), torch.tensor([0, 1]), (3, 3)).to_dense()",
    "torch.sparse.spdiags(torch.arange(6.0).view(2, 3), torch.tensor([-1, 2]), (4, 3), layout=torch.sparse_csr).to_dense()",
    "torch.sparse.sampled_addmm(csr, torch.ones(2, 2), torch.ones(2, 3), beta=0.5, alpha=2.0)",
    "torch.autograd.grad((torch.sparse_csr_tensor([0, 1, 2], [0, 1], v, (2, 2)) @ torch.ones(2, 2)).sum(), v)",
    "torch.autograd.grad(torch.sparse_csr_tensor([0, 1, 2], [0, 1], v, (2, 2)).to_dense().pow(2).sum(), v)",
]


def answer(code, torch):
    """What an expression shows, or what it raises."""
    space = {"torch": torch}
    exec(PREPARE, space)
    try:
        return repr(eval(code, space)).replace("mindtorch_v2", "torch")
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    import torch

    RECORDED.write_text(json.dumps({code: answer(code, torch) for code in SHOWN}, indent=0) + "\n")
