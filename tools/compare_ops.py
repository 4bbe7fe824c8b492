"""PyTorch's own sample inputs, run in PyTorch and here: values, dtypes, shapes, strides, gradients and errors of every op.

    /path/with/torch/python tools/compare_ops.py sample build/ops     writes a file for each op: what was asked, what came out
    python tools/compare_ops.py check build/ops [name ...]            asks the same of this package and lists what differs

The samples are those that PyTorch tests its ops with (`torch.testing._internal`). An op is called in several forms: as it
is, with `out=`, in place, with its tensors laid out in other ways in memory, and where it can be differentiated also backward,
twice backward, forward and asking which results require grad. Differences that are meant, each with its reason, stand in
compare_ops.txt beside this file; any other makes `check` fail.
"""

from __future__ import annotations

import argparse
import importlib
import io
import itertools
import json
import math
import os
import pickle
import signal
import sys
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

SECONDS = 20  # for one call
USUAL, OTHERS = 40, 12  # samples of float32, and of every other dtype
DTYPES = ["float32", "float64", "float16", "bfloat16", "complex64", "int64", "int32", "uint8", "bool"]
TOLERANCE = {"float64": 1e-6, "complex128": 1e-6, "float32": 2e-4, "complex64": 2e-4, "float16": 4e-3, "bfloat16": 4e-2}
MEANT = Path(__file__).with_suffix(".txt")


class Skip(Exception):
    """A form that makes no sense for these arguments."""


class TooLong(Exception):
    """A call took longer than anybody would wait."""


# ------------------------------------------------------------------ forms: the same code for both packages


def leaves(torch: Any, value: Any, wanted: Any) -> list[Any]:
    """The tensors somewhere in `value` for which `wanted` is true."""
    if isinstance(value, torch.Tensor):
        return [value] if value.layout == torch.strided and wanted(value) else []
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [found for one in inside for found in leaves(torch, one, wanted)]


def copied(torch: Any, value: Any) -> Any:
    """The same arguments in memory of their own."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad) if value.layout == torch.strided else value
    if type(value) in (list, tuple):
        return type(value)(copied(torch, one) for one in value)
    return {key: copied(torch, one) for key, one in value.items()} if isinstance(value, dict) else value


def plain(torch: Any, value: Any) -> Any:
    """A result as what can be saved and compared: tensors, numbers, and lists that begin with the name of their type."""
    if isinstance(value, torch.Tensor):
        return value.detach() if value.layout == torch.strided else "a sparse tensor"
    if isinstance(value, list | tuple):
        return [type(value).__name__, *(plain(torch, one) for one in value)]
    return value if isinstance(value, int | float | complex | str | None) else repr(value)


def ramp(torch: Any, like: Any) -> Any:
    """-1 to 1 in the shape of a tensor."""
    return torch.linspace(-1, 1, max(like.numel(), 1))[: like.numel()].reshape(like.shape).to(like.dtype)


def loss(torch: Any, result: Any) -> Any:
    made = leaves(torch, result, lambda one: one.requires_grad)
    if not made:
        raise Skip
    return sum((one.abs() if one.is_complex() else one).sum() for one in made)


def as_it_is(torch: Any, function: Any, name: str, given: Any) -> Any:
    return function(*given[0], **given[1])


def backward(torch: Any, function: Any, name: str, given: Any) -> Any:
    start = leaves(torch, given, lambda one: one.is_floating_point() or one.is_complex())
    if not start:
        raise Skip
    for one in start:
        one.requires_grad_()
    return list(torch.autograd.grad(loss(torch, function(*given[0], **given[1])), start, allow_unused=True))


def twice_backward(torch: Any, function: Any, name: str, given: Any) -> Any:
    first = given[0][0]
    if not isinstance(first, torch.Tensor) or not first.is_floating_point():
        raise Skip
    first.requires_grad_()
    made = leaves(torch, function(*given[0], **given[1]), lambda one: one.requires_grad)
    if not made or any(one.is_complex() for one in made):
        raise Skip
    (once,) = torch.autograd.grad(sum((one * one).sum() for one in made), [first], create_graph=True)
    return list(torch.autograd.grad((once * ramp(torch, once)).sum(), [first], allow_unused=True))


def forward(torch: Any, function: Any, name: str, given: Any) -> Any:
    (first, *others), keywords = given
    if not isinstance(first, torch.Tensor) or not first.is_floating_point():
        raise Skip
    modes = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
    with modes.dual_level():
        result = function(modes.make_dual(first, ramp(torch, first)), *others, **keywords)
        return [modes.unpack_dual(one).tangent for one in leaves(torch, result, lambda _: True)]


def into_out(torch: Any, function: Any, name: str, given: Any) -> Any:
    if "out" in given[1]:
        raise Skip
    result = function(*given[0], **given[1])
    out = torch.empty_like(result) if isinstance(result, torch.Tensor) else tuple(torch.empty_like(one) for one in result)
    torch.manual_seed(1)
    return [function(*given[0], **given[1], out=out), out]


def in_place(torch: Any, function: Any, name: str, given: Any) -> Any:
    (first, *others), keywords = given
    return [getattr(first, name)(*others, **keywords) is first, first]


def in_place_backward(torch: Any, function: Any, name: str, given: Any) -> Any:
    (first, *others), keywords = given
    leaf = first.detach().clone().requires_grad_()
    result = getattr(leaf * 1, name)(*others, **keywords)
    return list(torch.autograd.grad((result * ramp(torch, result)).sum(), [leaf], allow_unused=True))


def requires_grad(torch: Any, function: Any, name: str, given: Any) -> Any:
    """Which results of inputs that require grad require it themselves."""
    start = leaves(torch, given, lambda one: one.is_floating_point() or one.is_complex())
    if not start:
        raise Skip
    for one in start:
        one.requires_grad_()
    return [one.requires_grad for one in leaves(torch, function(*given[0], **given[1]), lambda _: True)]


def laid_out(torch: Any, value: Any, lay_out: Any) -> Any:
    """The same arguments, each tensor of several dims laid out in another way in memory."""
    if isinstance(value, torch.Tensor):
        return lay_out(value) if value.layout == torch.strided and value.ndim > 1 and value.numel() > 1 else value
    if type(value) in (list, tuple):
        return type(value)(laid_out(torch, one, lay_out) for one in value)
    return {key: laid_out(torch, one, lay_out) for key, one in value.items()} if isinstance(value, dict) else value


def transposed(torch: Any, function: Any, name: str, given: Any) -> Any:
    """The first dim is the innermost of each tensor."""
    given = laid_out(
        torch, given, lambda one: one.transpose(0, -1).clone(memory_format=torch.contiguous_format).transpose(0, -1)
    )
    return function(*given[0], **given[1])


def first_transposed(torch: Any, function: Any, name: str, given: Any) -> Any:
    """The last dim of the first tensor is its outermost; other tensors lie as they are."""
    first = laid_out(
        torch, given[0][0], lambda one: one.movedim(-1, 0).clone(memory_format=torch.contiguous_format).movedim(0, -1)
    )
    return function(first, *given[0][1:], **given[1])


def channels_last(torch: Any, function: Any, name: str, given: Any) -> Any:
    """The second dim is the innermost of each tensor."""
    given = laid_out(torch, given, lambda one: one.movedim(1, -1).clone(memory_format=torch.contiguous_format).movedim(-1, 1))
    return function(*given[0], **given[1])


def sliced(torch: Any, function: Any, name: str, given: Any) -> Any:
    """There is a gap after each element of a transposed tensor."""

    def spaced(one: Any) -> Any:
        room = torch.zeros([*reversed(one.shape), 2], dtype=one.dtype)[..., 0].permute(*reversed(range(one.ndim)))
        return room.copy_(one)

    given = laid_out(torch, given, spaced)
    return function(*given[0], **given[1])


def expanded(torch: Any, function: Any, name: str, given: Any) -> Any:
    """The first row stands for all of them."""
    given = laid_out(torch, given, lambda one: one[:1].expand(one.shape))
    return function(*given[0], **given[1])


LAYOUTS = (transposed, first_transposed, channels_last, sliced, expanded)
FORMS = {
    form.__name__: form
    for form in (as_it_is, backward, twice_backward, forward, into_out, in_place, in_place_backward, requires_grad, *LAYOUTS)
}
FORMS["refused"] = as_it_is


def outcome(torch: Any, form: str, function: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """What a call gives: a result or an error."""
    given = copied(torch, list(args)), copied(torch, dict(keywords))
    torch.manual_seed(1)
    signal.alarm(SECONDS)
    try:
        return {"result": plain(torch, FORMS[form](torch, function, name, given))}
    except (Skip, TooLong) as stopped:
        return {"skipped": type(stopped).__name__}
    except Exception as error:
        return {"error": [type(error).__name__, str(error)[:400]]}
    finally:
        signal.alarm(0)


def found(torch: Any, name: str) -> Any:
    """The function of a dotted name, or the method; None if there is neither."""
    for root in (torch, torch.Tensor):
        at = root
        for part in name.split("."):
            at = getattr(at, part, None)
        if at is not None:
            return at
    return None


# ------------------------------------------------------------------ with PyTorch


def sample(folder: Path) -> None:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    crashed = []
    for number, op in enumerate(op_db):
        function = found(torch, op.name)
        if function is None:
            continue
        # In a process of its own: some kernels of PyTorch take instructions that not every processor has.
        child = os.fork()
        if not child:
            sample_op(torch, op, function, folder / f"{number:04}.pickle")
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            crashed.append(op.name)
    print(f"{len(op_db)} ops in {folder}" + (f"; PyTorch crashed in {', '.join(crashed)}" if crashed else ""))


def sample_op(torch: Any, op: Any, function: Any, path: Path) -> None:
    """Write what an op was asked and what came out; written at the end, so that a crash leaves no half file."""
    in_place_name = getattr(op.get_inplace(), "__name__", "")
    cases = [
        case
        for dtype in DTYPES
        if getattr(torch, dtype) in op.dtypes
        for case in sampled(torch, op, function, dtype, in_place_name)
    ]
    cases += refused(torch, op, function)
    name = op.name + (f" ({op.variant_test_name})" if op.variant_test_name else "")
    path.write_bytes(pickle.dumps({"function": op.name, "name": name, "in_place": in_place_name, "cases": cases}))


def sampled(torch: Any, op: Any, function: Any, dtype: str, in_place_name: str) -> list[bytes]:
    """The usual samples of an op, each in every form that the op has."""
    forms = ["as_it_is"]
    if dtype in ("float32", "complex64") and op.supports_autograd:
        forms.append("backward")
    if dtype == "float32":
        forms += ["twice_backward"] * op.supports_gradgrad + ["forward"] * op.supports_forward_ad
        forms += [form.__name__ for form in (requires_grad, *LAYOUTS)]
    if dtype in ("float32", "int32"):
        forms += ["into_out"] * op.supports_out + ["in_place"] * bool(in_place_name)
    if dtype == "float32" and in_place_name and op.supports_inplace_autograd:
        forms.append("in_place_backward")
    torch.manual_seed(0)
    try:
        inputs = list(
            itertools.islice(
                op.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False), USUAL if dtype == "float32" else OTHERS
            )
        )
    except Exception as error:
        print(f"{op.name} {dtype}: no samples: {error}", file=sys.stderr)
        return []
    return list(filter(None, [asked(torch, form, function, in_place_name, one) for one in inputs for form in forms]))


def refused(torch: Any, op: Any, function: Any) -> list[bytes]:
    """Arguments that an op must not take."""
    bad = op.error_inputs("cpu") if op.error_inputs_func is not None else ()
    return list(filter(None, [asked(torch, "refused", function, "", one.sample_input) for one in bad]))


def asked(torch: Any, form: str, function: Any, name: str, given: Any) -> bytes:
    """A call and what came of it, as the bytes of a checkpoint; none if there is nothing to compare."""
    args, keywords = copied(torch, [given.input, *given.args]), copied(torch, given.kwargs)
    case = outcome(torch, form, function, name, args, keywords)
    if "skipped" in case or (form == "refused" and "error" not in case):
        return b""
    stream = io.BytesIO()
    try:
        torch.save({"form": form, "args": args, "keywords": keywords, **case}, stream)
    except Exception:  # functions and the like among the arguments
        return b""
    return stream.getvalue()


# ------------------------------------------------------------------ with this package


def difference(torch: Any, wanted: Any, got: Any, path: str = "") -> str | None:
    """In what a result differs, or None. Strides and types of containers are told by a text that begins with "only"."""
    if isinstance(wanted, torch.Tensor):
        return tensor_difference(torch, wanted, got, path)
    if wanted == "a sparse tensor":
        return None
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(got) != len(wanted):
            return f"{path} is {got!r:.60}, not {wanted[0]} of {len(wanted) - 1}"
        all_of_them = [
            difference(torch, *pair, f"{path}[{at}]") for at, pair in enumerate(zip(wanted[1:], got[1:], strict=True))
        ]
        differing = sorted(filter(None, all_of_them), key=lambda text: text.startswith("only"))
        return next(iter(differing), None if wanted[0] == got[0] else f"only {path} is a {got[0]}, not a {wanted[0]}")
    if isinstance(wanted, float) and isinstance(got, float):
        close = math.isclose(wanted, got, rel_tol=1e-4) or (math.isnan(wanted) and math.isnan(got))
        return None if close else f"{path} {got}, not {wanted}"
    return None if wanted == got and type(wanted) is type(got) else f"{path} is {got!r:.60}, not {wanted!r:.60}"


def strides_of(tensor: Any) -> list[int]:
    """Strides of the dims that have more than one place: those that decide where an element lies."""
    return [stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1]


def tensor_difference(torch: Any, wanted: Any, got: Any, path: str) -> str | None:
    if not isinstance(got, torch.Tensor):
        return f"{path} is {got!r:.60}, not a tensor"
    for what in ("dtype", "shape"):
        if getattr(wanted, what) != getattr(got, what):
            return f"{path} {what} {getattr(got, what)}, not {getattr(wanted, what)}"
    tolerance = TOLERANCE.get(str(wanted.dtype).rpartition(".")[2], 0)
    left, right = (one.float() if one.dtype in (torch.bfloat16, torch.float16) else one for one in (wanted, got))
    if tolerance:
        finite = left[torch.isfinite(left)].abs()
        scale = max(1.0, float(finite.max())) if finite.numel() else 1.0
        close = torch.allclose(left, right, tolerance, tolerance / 10 * scale, equal_nan=True)
    else:
        close = torch.equal(left, right)
    if not close:
        return f"{path} values {right.reshape(-1)[:4].tolist()}, not {left.reshape(-1)[:4].tolist()}"
    if wanted.numel() > 1 and strides_of(wanted) != strides_of(got):
        return f"only {path} strides {got.stride()}, not {wanted.stride()} for shape {tuple(wanted.shape)}"
    return None


_LAID_OUT = {"as_it_is", "into_out", *(form.__name__ for form in LAYOUTS)}


def verdict(torch: Any, case: dict[str, Any], ours: dict[str, Any]) -> tuple[str, str]:
    """(kind of difference or "", what differs)."""
    if "skipped" in ours:
        return ("slow", f"longer than {SECONDS} s") if ours["skipped"] == "TooLong" else ("raises", "makes no sense here")
    if "error" in case:
        (kind, message), mine = case["error"], ours.get("error")
        if mine is None:
            return "accepts", f"{kind}: {message}"
        if case["form"] == "refused" and mine[0] != kind:
            return "error class", f"{mine[0]}, not {kind}"
        if case["form"] == "refused" and mine[1].split("\n")[0] != message.split("\n")[0]:
            return "message", f"{mine[1]!r:.120}, not {message!r:.120}"
        return "", ""
    if "error" in ours:
        return "raises", ": ".join(ours["error"])
    text = difference(torch, case["result"], ours["result"])
    if text is None:
        return "", ""
    if not text.startswith("only "):
        return "values", text
    # Where gradients lie in memory is nobody's promise.
    return ("strides", text.removeprefix("only ")) if case["form"] in _LAID_OUT else ("", "")


def described(torch: Any, value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(described(torch, one) for one in value)}]"
    if isinstance(value, dict):
        return ", ".join(f"{key}={described(torch, one)}" for key, one in value.items())
    return f"{value!r:.40}"


def meant() -> dict[tuple[str, str], str]:
    """(op or *, kind) of differences that are there on purpose, and why."""
    rows = [line.split("|") for line in MEANT.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {(op.strip(), kind.strip()): reason.strip() for op, kind, reason in rows}


def compared(torch: Any, function: Any, in_place_name: str, saved: bytes) -> tuple[str, str]:
    """(kind of difference or "", the call and what differs)."""
    try:
        case = torch.load(io.BytesIO(saved), weights_only=False)
    except Exception as error:
        return "unreadable", str(error)
    ours = outcome(torch, case["form"], function, in_place_name, case["args"], case["keywords"])
    kind, text = verdict(torch, case, ours)
    return kind, f"{case['form']} {described(torch, case['args'])} {described(torch, case['keywords'])}: {text}"


def check(folder: Path, names: list[str]) -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
    import mindtorch_v2 as torch
    from mindtorch_v2 import as_torch

    as_torch.install()
    expected, counts, differing = meant(), Counter[str](), defaultdict[tuple[str, str], list[str]](list)
    for path in sorted(folder.glob("*.pickle")):
        op = pickle.loads(path.read_bytes())
        if names and op["function"] not in names:
            continue
        function = found(torch, op["function"])
        if function is None:
            counts["missing"] += len(op["cases"])
            differing[op["name"], "missing"].append(f"{len(op['cases'])} calls")
        for saved in op["cases"] if function is not None else ():
            kind, text = compared(torch, function, op["in_place"], saved)
            counts[kind or "same"] += 1
            if kind:
                differing[op["name"], kind].append(text)
    left = 0
    for (name, kind), texts in sorted(differing.items(), key=lambda item: item[0][::-1]):
        if expected.get((name, kind)) or expected.get(("*", kind)):
            continue
        left += 1
        for text in texts if names else texts[:1]:
            print(f"{kind:12} {name} x{len(texts)}: {text:.300}")
    print(json.dumps(dict(counts)))
    return 1 if left else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("sample", "check"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="only these ops, with every case")
    given = parser.parse_args()
    warnings.simplefilter("ignore")

    def too_long(*_: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, too_long)
    if given.what == "sample":
        sample(given.folder)
        return 0
    return check(given.folder, given.names)


if __name__ == "__main__":
    sys.exit(main())
