"""out=: what is returned, and what is refused."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

MATRIX = torch.tensor([[4.0, 1.0], [2.0, 3.0]])
FLOAT, INT, LONG = torch.float32, torch.int32, torch.int64


def fresh(*dtypes):
    return tuple(torch.empty(0, dtype=dtype) for dtype in dtypes)


@pytest.mark.parametrize(
    ("call", "dtypes", "name", "fields"),
    [
        (lambda out: torch.max(MATRIX, 1, out=out), (FLOAT, LONG), "max_out", ("values", "indices")),
        (lambda out: torch.min(MATRIX, 1, out=out), (FLOAT, LONG), "min_out", ("values", "indices")),
        (lambda out: torch.topk(MATRIX, 1, out=out), (FLOAT, LONG), "topk_out", ("values", "indices")),
        (lambda out: torch.sort(MATRIX, out=out), (FLOAT, LONG), "sort_out", ("values", "indices")),
        (lambda out: torch.cummax(MATRIX, 1, out=out), (FLOAT, LONG), "cummax_out", ("values", "indices")),
        (lambda out: torch.aminmax(MATRIX, out=out), (FLOAT, FLOAT), "aminmax_out", ("min", "max")),
        (lambda out: torch.frexp(MATRIX, out=out), (FLOAT, INT), "frexp_out", ("mantissa", "exponent")),
        (lambda out: torch.linalg.qr(MATRIX, out=out), (FLOAT, FLOAT), "linalg_qr_out", ("Q", "R")),
        (lambda out: torch.linalg.svd(MATRIX, out=out), (FLOAT,) * 3, "linalg_svd_out", ("U", "S", "Vh")),
        (lambda out: torch.linalg.slogdet(MATRIX, out=out), (FLOAT, FLOAT), "linalg_slogdet_out", ("sign", "logabsdet")),
        (lambda out: torch.linalg.solve_ex(MATRIX, MATRIX, out=out), (FLOAT, INT), "linalg_solve_ex_out", ("result", "info")),
        (lambda out: torch.linalg.ldl_factor(MATRIX, out=out), (FLOAT, INT), "linalg_ldl_factor_out", ("LD", "pivots")),
    ],
)
def test_several_results_are_the_given_tensors_under_their_names(call, dtypes, name, fields):
    out = fresh(*dtypes)
    made = call(out)
    assert type(made) is getattr(torch.return_types, name)
    assert type(made).__name__ == name and made._fields == fields
    assert all(one is given for one, given in zip(made, out, strict=True))
    for one, expected in zip(made, call(None), strict=True):
        torch.testing.assert_close(one, expected)
    assert type(call(list(fresh(*dtypes)))) is type(made)  # a list serves as well


def test_how_they_are_printed():
    made = torch.max(MATRIX, 1, out=fresh(FLOAT, LONG))
    assert repr(made) == "torch.return_types.max_out(\nvalues=tensor([4., 3.]),\nindices=tensor([0, 1]))"


def test_results_without_names_stay_a_plain_tuple():
    out = fresh(FLOAT, FLOAT, FLOAT)
    made = torch.native_batch_norm(MATRIX, None, None, None, None, True, 0.1, 1e-5, out=out)
    assert type(made) is tuple and made[0] is out[0]


def test_one_result_is_the_given_tensor():
    out = torch.empty(0)
    assert torch.add(MATRIX, 1, out=out) is out


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.max(MATRIX, 1, out=fresh(FLOAT)), "expected tuple of 2 elements but got 1"),
        (lambda: torch.max(MATRIX, 1, out=(torch.empty(0), 1)), "expected Tensor as element 1 in argument 3, but got int"),
        (lambda: torch.topk(MATRIX, 1, out=torch.empty(0)), r"topk\(\): argument 'out' must be tuple of Tensors, not Tensor"),
        (lambda: torch.add(MATRIX, 1, out=fresh(FLOAT)), r"add\(\): argument 'out' must be Tensor, not tuple"),
        (
            lambda: torch.nonzero(MATRIX, as_tuple=True, out=fresh(LONG)),
            r"nonzero\(\): argument 'out' must be Tensor, not tuple",
        ),
        (lambda: torch.add(MATRIX, 1, out=3), r"add\(\): argument 'out' must be Tensor, not int"),
    ],
)
def test_what_out_may_be(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: torch.aminmax(MATRIX, dim=0, out=fresh(FLOAT, torch.float64)),
            "Expected out tensor to have dtype float, but got double instead",
        ),
        (
            lambda: torch.aminmax(MATRIX, dim=0, out=fresh(torch.float64, FLOAT)),
            "Expected out tensor to have dtype float, but got double instead",
        ),
        (
            lambda: torch.amax(MATRIX, dim=0, out=torch.empty(2, dtype=INT)),
            "Expected the dtype for input and out to match, but got Float for input's dtype and Int for out's dtype.",
        ),
        (
            lambda: torch.amin(MATRIX, dim=0, out=torch.empty(2, dtype=torch.float64)),
            "Expected the dtype for input and out to match, but got Float for input's dtype and Double for out's dtype.",
        ),
        (
            lambda: torch.nn.functional.avg_pool2d(MATRIX[None], 2, out=torch.empty(0, dtype=torch.float64)),
            "Expected out tensor to have dtype float, but got double instead",
        ),
    ],
)
def test_dtypes_of_out(call, message):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value) == message


def test_places_as_a_tuple_have_no_out():
    with pytest.raises(RuntimeError, match="nonzero does not support the out kwarg when as_tuple is True"):
        torch.nonzero(MATRIX, as_tuple=True, out=torch.empty(0, dtype=LONG))
    assert [found.tolist() for found in torch.nonzero(MATRIX - 4, as_tuple=True)] == [[0, 1, 1], [1, 0, 1]]


def test_average_pooling_writes_into_out():
    pool = torch.nn.functional
    out = torch.empty(0)
    assert pool.avg_pool2d(MATRIX[None], 2, out=out) is out and out.tolist() == [[[2.5]]]
    cube = torch.arange(8.0).reshape(1, 2, 2, 2)
    out = torch.empty(0)
    assert pool.avg_pool3d(cube, 2, out=out) is out and out.tolist() == [[[[3.5]]]]


def test_nothing_to_reduce():
    with pytest.raises(IndexError, match="^aminmax: Expected reduction dim 1 to have non-zero size.$"):
        torch.aminmax(torch.empty(5, 0, 5), dim=1)
    with pytest.raises(IndexError, match=r"^max\(\): Expected reduction dim 1 to have non-zero size.$"):
        torch.max(torch.empty(5, 0, 5), 1)


@pytest.mark.parametrize("p", ["fro", "nuc", 3, None])
def test_every_norm_is_written_into_out(p):
    out = torch.empty(())
    assert torch.norm(MATRIX, p, out=out) is out
    assert out == torch.norm(MATRIX, p)
