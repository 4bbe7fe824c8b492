"""Write docs/reference from the registry and the docstrings: every public op with its signatures, text and example.

python tools/reference.py            writes the pages
python tools/reference.py --check    exits with 1 if a page is not what would be written
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import mindtorch_v2 as torch
import mindtorch_v2._ops.reduction.histogramdd
import mindtorch_v2.distributions
import mindtorch_v2.special
import mindtorch_v2.utils.data
from mindtorch_v2 import _ops
from mindtorch_v2._dispatch.registry import OpSpec, Packet, packets
from mindtorch_v2._dispatch.schema import REQUIRED, Argument
from mindtorch_v2.profiler import analysis, results, views

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
# Pages of ops: the package of `_ops`, and its title.
FAMILIES = {
    "creation": "Creation, copies, conversion",
    "random": "Random tensors",
    "shape": "Shape, views and joins",
    "indexing": "Indexing, gather and scatter, masks",
    "pointwise": "Arithmetic and comparison",
    "special": "Exponentials and special functions",
    "reduction": "Reductions, sorting, counting",
    "linalg": "Linear algebra",
    "nn": "Layers: activations, convolution, pooling, normalization",
    "loss": "Losses",
    "spectral": "Fourier transforms",
    "optimizer": "Lists of tensors and fused optimizer steps",
}


def main() -> None:
    pages = dict(all_pages())
    if sys.argv[1:] == ["--check"]:
        stale = sorted(name for name, text in pages.items() if not _is(FOLDER / name, text))
        stale += sorted(path.name for path in FOLDER.glob("*.md") if path.name not in pages)
        sys.exit(f"stale: {', '.join(stale)}; run `make reference`" if stale else 0)
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text)


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


def all_pages() -> Iterator[tuple[str, str]]:
    """The name and the text of every page."""
    contents: list[str] = []
    for family, title in FAMILIES.items():
        entries = [op_entry(name, packet) for name, packet in sorted(public_ops(family))]
        if entries:
            contents.append(f"- [{title}]({family}.md): {len(entries)} ops")
            yield f"{family}.md", page(title, entries)
    for name, title, classes in CLASSES:
        entries = [class_entry(path, found) for path, found in classes()]
        contents.append(f"- [{title}]({name}.md): {len(entries)}")
        yield f"{name}.md", page(title, entries)
    header = (
        "# API reference\n\nMade from the declarations of the ops and from docstrings by `make reference`. Every op is a "
        "function of `torch` and, where its first argument is a tensor, a method of `Tensor`.\n\n"
    )
    yield "README.md", header + "\n".join(contents) + "\n"


def page(title: str, entries: list[str]) -> str:
    return f"# {title}\n\n" + "\n".join(entries)


# ---------------------------------------------------------------- ops


def public_ops(family: str) -> Iterator[tuple[str, Packet]]:
    """The ops of a package of `_ops` that a user calls by name."""
    prefix = f"{_ops.__name__}.{family}."
    for name, packet in packets.items():
        first = next(iter(packet))
        if name.startswith("_") or "::" in name or name.endswith(("_", "_backward")):
            continue
        if first.home.startswith(prefix):
            yield name, packet


def op_entry(name: str, packet: Packet) -> str:
    signatures = [
        signature(spec) for spec in packet if not spec.schema.overload.endswith("Scalar") or len(packet.overloads) == 1
    ]
    lines = [f"## {public_name(name)}", "", "```text", *dict.fromkeys(signatures), "```", "", ""]
    return "\n".join(lines) + text_of(packet.doc) + "\n"


def public_name(name: str) -> str:
    for prefix in ("linalg_", "fft_", "special_"):
        if name.startswith(prefix):
            return f"torch.{prefix[:-1]}.{name.removeprefix(prefix)}"
    for home, place in (("torch", torch), ("torch.nn.functional", torch.nn.functional), ("Tensor", torch.Tensor)):
        if hasattr(place, name):
            return f"{home}.{name}"
    return f"torch.ops.aten.{name}"


def signature(spec: OpSpec) -> str:
    """An overload's signature in Python's words."""
    parts: list[str] = []
    for argument in spec.schema.arguments:
        if argument.keyword_only and "*" not in parts:
            parts.append("*")
        parts.append(parameter(argument))
    if spec.out and spec.schema.returns and not spec.schema.is_view and spec.schema.returns[0].startswith("Tensor"):
        parts += [*([] if "*" in parts else ["*"]), "out=None"]
    returned = ", ".join(spec.schema.returns) or "None"
    returned = f"({returned})" if len(spec.schema.returns) > 1 else returned
    return f"{public_name(spec.schema.name).removeprefix('torch.')}({', '.join(parts)}) -> {re.sub(r'[(]a!?[)]', '', returned)}"


def parameter(argument: Argument) -> str:
    kind = re.sub(r"\(a!?\)", "", argument.type_text)
    default = "" if argument.default is REQUIRED else f" = {argument.default!r}"
    return f"{argument.python_name}: {kind}{default}"


def text_of(doc: str | None) -> str:
    """A docstring as Markdown: examples in fences."""
    if not doc:
        return ""
    lines = inspect.cleandoc(doc).splitlines()
    markdown: list[str] = []
    inside = False
    for line in lines:
        example = line.startswith(">>>") or (inside and bool(line.strip()))
        if example and not inside:
            markdown.append("```python")
        if inside and not example:
            markdown.append("```")
        inside = example
        markdown.append(line)
    if inside:
        markdown.append("```")
    return "\n".join(markdown) + "\n"


# ---------------------------------------------------------------- classes


def class_entry(path: str, found: Any) -> str:
    try:
        arguments = _signature(found)
    except (TypeError, ValueError):
        arguments = "(...)"
    lines = [f"## {path}", "", "```text", f"{path}{arguments}", "```", "", ""]
    methods = [
        f"- `{name}{_arguments(member)}`: {_first_line(member)}"
        for name, member in sorted(vars(found).items() if inspect.isclass(found) else ())
        if not name.startswith("_") and inspect.isfunction(member) and member.__doc__
    ]
    text = text_of(inspect.getdoc(found))
    return "\n".join(lines) + text + ("\n" + "\n".join(methods) + "\n" if methods else "")


class _Annotation(str):
    """An annotation, which is text already: shown without quotes around it."""

    def __repr__(self) -> str:
        return str(self)


def _signature(found: Any) -> str:
    """The signature as it is written; functions as defaults are named, without their address."""
    written = inspect.signature(found)
    parameters = [p.replace(annotation=_plain(p.annotation)) for p in written.parameters.values()]
    written = written.replace(parameters=parameters, return_annotation=_plain(written.return_annotation))
    return re.sub(r"<function ([\w.]+) at 0x\w+>", r"\1", str(written))


def _plain(annotation: Any) -> Any:
    return _Annotation(annotation) if isinstance(annotation, str) else annotation


def _arguments(member: Any) -> str:
    return _signature(member).partition(" -> ")[0]


def _first_line(member: Any) -> str:
    return inspect.cleandoc(member.__doc__).partition("\n")[0]


def _members(module: ModuleType, path: str) -> Iterator[tuple[str, Any]]:
    names = [name for name in getattr(module, "__all__", dir(module)) if not name.startswith("_")]
    for name in sorted(names):
        member = getattr(module, name)
        if inspect.isclass(member) or inspect.isfunction(member):
            yield f"{path}.{name}", member


def _profiler() -> Iterator[tuple[str, Any]]:
    yield from _members(torch.profiler, "torch.profiler")
    for found in (
        results.loaded.LoadedProfile,
        views.event_list.EventList,
        views.events.FunctionEvent,
        views.averages.FunctionEventAvg,
        analysis.findings.Finding,
    ):
        yield found.__name__, found


CLASSES = [
    ("modules", "Modules", lambda: _members(torch.nn, "torch.nn")),
    ("optim", "Optimizers and schedulers", lambda: [*_members(torch.optim, "torch.optim"), *_schedulers()]),
    ("data", "Data loading", lambda: _members(torch.utils.data, "torch.utils.data")),
    ("distributions", "Distributions", lambda: _members(torch.distributions, "torch.distributions")),
    ("profiler", "Profiler", _profiler),
]


def _schedulers() -> Iterator[tuple[str, Any]]:
    return _members(torch.optim.lr_scheduler, "torch.optim.lr_scheduler")


if __name__ == "__main__":
    main()
