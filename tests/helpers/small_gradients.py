"""Small cases of gradients, as real PyTorch gave them: small_gradients.json.

Sizes 0 and 1, tensors without dims, indices that repeat, ties, zeros, broadcast and repeated subscripts; the value, which
results require grad, the gradient, and that of the gradient. Run this file with a Python that has PyTorch to record the
table again.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("small_gradients.json")

Case = tuple[Callable[[], list[Any]], Callable[..., Any]]


class Cases:
    """The cases of one package: names, each with what makes the leaves and what computes with them."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.all: dict[str, Case] = {}
        self.scatter_reduce()
        self.scatter()
        self.variance()
        self.einsum()
        self.conjugates()

    def leaf(self, *shape: int, start: float = 1.0, step: float = 0.75, complex_: bool = False) -> Any:
        torch = self.torch
        values = (torch.arange(math.prod(shape), dtype=torch.float64) * step + start).reshape(shape)
        return (torch.complex(values, values * 0.5 - 1) if complex_ else values).requires_grad_()

    def index(self, places: Any, shape: tuple[int, ...] | None = None) -> Any:
        made = self.torch.tensor(places, dtype=self.torch.int64)
        return made if shape is None else made.reshape(shape)

    def scatter_reduce(self) -> None:
        shapes: dict[str, Any] = {
            "line": ((4,), [0, 0, 3], (3,)),
            "no dims": ((), 0, ()),
            "nothing": ((3,), [], (0,)),
            "one": ((1,), [0, 0], (2,)),
            "matrix": ((2, 3), [[0, 1, 0], [1, 1, 0]], (2, 3)),
            "one place": ((3,), [1, 1, 1], (3,)),
            "no rows": ((0, 3), [], (0, 3)),
        }
        values = {"": ((1.0, 0.75), (0.5, 0.75)), " ties": ((1.0, 0), (1.0, 0)), " zeros": ((0.0, 0), (0.0, 1))}
        for reduce in ("sum", "prod", "mean", "amax", "amin"):
            for own in (True, False):
                for name, (shape, places, source) in shapes.items():
                    for kind, ((a, da), (b, db)) in values.items():
                        self.all[f"scatter_reduce {reduce} {own} {name}{kind}"] = (
                            lambda shape=shape, source=source, a=a, da=da, b=b, db=db: [
                                self.leaf(*shape, start=a, step=da),
                                self.leaf(*source, start=b, step=db),
                            ],
                            lambda x, src, p=places, s=source, r=reduce, o=own: x.scatter_reduce(
                                0, self.index(p, s), src, r, include_self=o
                            ),
                        )
                    if shape and reduce != "sum":
                        self.all[f"index_reduce {reduce} {own} {name}"] = (
                            lambda shape=shape, source=source: [self.leaf(*shape), self.leaf(*source, start=0.5)],
                            lambda x, src, r=reduce, o=own: x.index_reduce(
                                0, self.index([0] * src.shape[0]), src, r, include_self=o
                            ),
                        )

    def scatter(self) -> None:
        torch = self.torch
        shapes: dict[str, Any] = {
            "line": ((4,), [0, 0, 3], (3,)),
            "no dims": ((), 0, ()),
            "nothing": ((3,), [], (0,)),
            "one": ((1,), [0, 0], (2,)),
            "matrix": ((2, 3), [[0, 1, 0], [1, 1, 0]], (2, 3)),
        }
        calls: dict[str, Any] = {
            "scatter": lambda x, s, i: x.scatter(0, i, s),
            "scatter number": lambda x, s, i: x.scatter(0, i, 2.5),
            "scatter_": lambda x, s, i: (x * 1).scatter_(0, i, s * 2),
            "scatter_add": lambda x, s, i: x.scatter_add(0, i, s),
            "gather": lambda x, s, i: x.gather(0, i),
            "take": lambda x, s, i: x.take(i),
            "take_along_dim": lambda x, s, i: torch.take_along_dim(x, i, None),
            "put": lambda x, s, i: x.put(i, s),
            "put accumulate": lambda x, s, i: x.put(i, s, accumulate=True),
            "index_select": lambda x, s, i: x.index_select(0, i.flatten()),
            "index_put accumulate": lambda x, s, i: x.index_put((i.flatten(),), s.sum(), accumulate=True),
            "index_fill": lambda x, s, i: x.index_fill(0, i.flatten(), s.sum()),
        }
        for name, (shape, places, source) in shapes.items():
            for title, call in calls.items():
                self.all[f"{title} {name}"] = (
                    lambda shape=shape, source=source: [self.leaf(*shape), self.leaf(*source, start=0.5)],
                    lambda x, s, call=call, p=places, shape=source: call(x, s, self.index(p, shape)),
                )

    def variance(self) -> None:
        shapes = ((), (0,), (1,), (2,), (3, 1), (1, 3), (0, 3), (3, 0), (2, 3))
        options: list[dict[str, Any]] = [{}, *({"correction": one} for one in (-1, 0, 1, 2, 5, 0.5))]
        options += [{"dim": 0}, {"dim": 0, "keepdim": True}, {"dim": (0, -1), "correction": 0}, {"dim": 0, "correction": 2}]
        for name in ("var", "std", "var_mean", "std_mean"):
            function = getattr(self.torch, name)
            for shape in shapes:
                for one in options:
                    self.all[f"{name} {shape} {one}"] = (
                        lambda shape=shape: [self.leaf(*shape)],
                        lambda x, f=function, o=one: f(x, **o),
                    )
            self.all[f"{name} of equal elements"] = lambda: [self.leaf(3, step=0)], function
            for size in (1, 3):
                self.all[f"{name} of {size} complex"] = lambda n=size: [self.leaf(n, complex_=True)], function

    def einsum(self) -> None:
        equations = """
            ii->i 33; ii 33; iij->ij 223; ii,jj->ij 22 33; ...ii->...i 233; ...ij,...jk->...ik 223 32;
            ...ij,...jk->...ik 123 432;
            i,i-> 3 3; i,j->ij 0 3; ij,jk->ik 20 03; ij,jk->ik 11 13; ij,jk->ik 21 34; bij,bjk->bik 123 432; i-> 3; ij-> 23;
            ij->ji 23; iii->i 222; ij,ij,ij->i 23 23 23; a,b,c->abc 2 1 3; ...,...->... 23 3; ...-> 23; ...a,a->... 23 3;
            ab...,b->a... 234 3; ii,i->i 33 3; ij,j 23 3; ba 23; i,i,i->i 1 3 1; ij,kj->ik 13 21; i...->... 3; Ab,bA->A 23 32
        """
        for line in equations.split(";"):
            equation, *shapes = line.split()
            for complex_ in (False, True):
                self.all[f"einsum {equation} {' '.join(shapes)}{' complex' * complex_}"] = (
                    lambda shapes=shapes, c=complex_: [
                        self.leaf(*map(int, shape), start=at + 0.5, complex_=c) for at, shape in enumerate(shapes)
                    ],
                    lambda *operands, e=equation: self.torch.einsum(e, *operands),
                )

    def conjugates(self) -> None:
        torch = self.torch
        calls: dict[str, Any] = {
            "conj": lambda x: x.conj(),
            "twice": lambda x: x.conj().conj(),
            "times itself": lambda x: x.conj() * x,
            "resolve_conj": lambda x: x.conj().resolve_conj(),
            "conj_physical": torch.conj_physical,
            "conj_physical_": lambda x: (x * 1).conj_physical_(),
            "abs": lambda x: (x.conj() * x).abs(),
            "real": lambda x: x.conj().real,
            "imag": lambda x: x.conj().imag if x.is_complex() else x * 1,
            "angle": lambda x: x.conj().angle(),
            "sum": lambda x: x.conj().sum(),
            "vdot": lambda x: torch.vdot(x.flatten(), x.conj().flatten() * 2),
            "mH": lambda x: x.reshape(1, -1).mH @ x.reshape(1, -1),
            "adjoint": lambda x: x.reshape(1, -1).adjoint(),
            "neg": lambda x: -x.conj(),
            "to complex": lambda x: x.conj().to(torch.complex128),
            "pow": lambda x: x.conj() ** 2,
            "exp": lambda x: x.conj().exp(),
            "prod": lambda x: x.conj().prod(),
            "cumsum": lambda x: x.conj().cumsum(0),
            "div": lambda x: 1 / (x.conj() + 5),
        }
        for complex_ in (False, True):
            for shape in ((), (0,), (1,), (3,)):
                for name, call in calls.items():
                    self.all[f"{name} of {'complex' if complex_ else 'real'} {shape}"] = (
                        lambda shape=shape, c=complex_: [self.leaf(*shape, complex_=c)],
                        call,
                    )


def shown(torch: Any, value: Any) -> Any:
    """Tensors as dtype, shape and numbers of six digits."""
    if value is None:
        return None
    if isinstance(value, tuple | list):
        return [shown(torch, one) for one in value]
    value = value.detach()
    if value.is_complex():
        value = torch.view_as_real(value.resolve_conj())
    return [str(value.dtype).split(".")[-1], list(value.shape), [float(f"{one:.6g}") for one in value.flatten().tolist()]]


def weighted(torch: Any, result: Any) -> Any:
    """A real number that depends on every result, and not in the same way on any two elements."""
    total = None
    for one in result if isinstance(result, tuple | list) else (result,):
        if one.requires_grad:
            count = one.numel()
            weight = torch.linspace(0.3, 1, max(count, 1), dtype=torch.float64)[:count].reshape(one.shape)
            if one.is_complex():
                weight = torch.complex(weight, weight * 2 - 1)
            part = (one * weight).sum() + (one * one.conj()).sum() * 0.25
            part = part.real if part.is_complex() else part
            total = part if total is None else total + part
    return total


def answer(torch: Any, case: Case) -> dict[str, Any]:
    """What a package makes of a case."""
    make, function = case
    found: dict[str, Any] = {}
    try:
        leaves = make()
        result = function(*leaves)
        found["value"] = shown(torch, result)
        found["requires_grad"] = [one.requires_grad for one in (result if isinstance(result, tuple | list) else (result,))]
        total = weighted(torch, result)
        if total is not None:
            grads = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
            found["grad"] = shown(torch, grads)
            second = weighted(torch, [one for one in grads if one is not None])
            if second is not None:
                found["second"] = shown(torch, torch.autograd.grad(second, leaves, allow_unused=True))
    except Exception as error:
        found["error"] = type(error).__name__
    return found


def same(wanted: Any, got: Any) -> bool:
    """Whether two answers agree, numbers to five digits."""
    if isinstance(wanted, dict):
        return wanted.keys() == got.keys() and all(same(one, got[key]) for key, one in wanted.items())
    if isinstance(wanted, list):
        return isinstance(got, list) and len(wanted) == len(got) and all(map(same, wanted, got))
    if isinstance(wanted, float):
        return (
            wanted == got or math.isclose(wanted, got, rel_tol=1e-5, abs_tol=1e-9) or (math.isnan(wanted) and math.isnan(got))
        )
    return bool(wanted == got)


def record() -> None:
    import torch

    warnings.simplefilter("ignore")
    lines = [f"{json.dumps(name)}: {json.dumps(answer(torch, case))}" for name, case in Cases(torch).all.items()]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
