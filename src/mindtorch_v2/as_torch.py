"""`import torch` as this package: scripts written for torch run unchanged.

    import mindtorch_v2.as_torch
    mindtorch_v2.as_torch.install()
    import torch                          # mindtorch_v2 itself, and so for every `torch.x.y`

or, for a whole program, `python -m mindtorch_v2.as_torch script.py arguments ...`, or `-m package` in place of the script.
Python processes that such a program starts, as launchers and data loaders do, have the alias as well: they inherit
`environment()`.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.metadata
import importlib.util
import os
import runpy
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from ._core.restoring import Actions, restoring

__all__ = ["environment", "install", "installed", "is_installed", "run", "run_module", "uninstall"]

_PACKAGE = "mindtorch_v2"
_TORCH = "torch"
_VARIABLE = "MINDTORCH_AS_TORCH"
_HOOK_FOLDER = str(Path(__file__).with_name("_as_torch_site"))


# Beside torch, PyTorch installs a package with the older names of `torch.func`, and Ascend one for its devices.
_FUNCTORCH, _TORCH_NPU = "functorch", "torch_npu"
_BESIDE = {
    _FUNCTORCH: f"{_PACKAGE}._functorch.functorch",
    _TORCH_NPU: f"{_PACKAGE}._torch_npu",
    f"{_TORCH_NPU}.npu": f"{_PACKAGE}.npu",
    f"{_TORCH_NPU}.profiler": f"{_PACKAGE}.npu.profiler",
}


def _ours(name: str) -> str:
    """`torch.nn` -> `mindtorch_v2.nn`, `torch_npu.profiler` -> `mindtorch_v2.npu.profiler`."""
    if name in _BESIDE:
        return _BESIDE[name]
    package, _, rest = name.partition(".")
    if package == _TORCH_NPU:
        above, _, last = name.rpartition(".")
        return f"{_ours(above)}.{last}"
    return f"{_PACKAGE}.{rest}" if rest else _PACKAGE


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` says of torch while the alias is installed: libraries ask it for torch's version."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        version = importlib.import_module(f"{_PACKAGE}.version").__version__
        return f"Metadata-Version: 2.1\nName: {_TORCH}\nVersion: {version}\nSummary: {_PACKAGE}, under the name of torch\n"

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        return Path(__file__).parent / path


class _Alias(MetaPathFinder, Loader):
    """Finds `torch` and everything below it in this package."""

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context | None = None
    ) -> Iterable[importlib.metadata.Distribution]:
        """The distribution `torch`, where that or all of them are asked for."""
        name = None if context is None else context.name
        return [_Distribution()] if name is None or name.lower() == _TORCH else []

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        package = name.partition(".")[0]
        if package not in (_TORCH, _TORCH_NPU) and name != _FUNCTORCH:
            return None
        if not _exists(_ours(name)):
            # Not None: the finders after this one would look into this package's folders under torch's name.
            raise ModuleNotFoundError(
                f"No module named {name!r}: {_PACKAGE} stands in for {package} and does not have it. What it does not support, "
                "and what to use instead, is listed in docs/compatibility.md",
                name=name,
            )
        return ModuleSpec(name, self)

    def exec_module(self, module: ModuleType) -> None:
        # The import system returns what stands in sys.modules afterwards. Replacing the new, empty module there keeps
        # `__name__` and `__spec__` of the real one as they are, which its relative imports need.
        name = module.__name__
        sys.modules[name] = importlib.import_module(_ours(name))
        if name == _TORCH:
            # Libraries look functions up by `torch.__name__` and a path. Relative imports go by `__package__`.
            sys.modules[name].__name__ = _TORCH
        # So do the modules below it that are loaded already. The import system would make each an attribute of its
        # package when it is first imported under torch's name, and `nn.utils.weight_norm` would no longer be the function.
        if name.partition(".")[0] != _TORCH:
            return
        below = _ours(name) + "."
        for loaded in list(sys.modules):
            if loaded.startswith(below):
                sys.modules.setdefault(_TORCH + loaded[len(_PACKAGE) :], sys.modules[loaded])


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # what it would be in is no package
        return False


_alias = _Alias()


def is_installed() -> bool:
    """Whether `import torch` means this package."""
    return _alias in sys.meta_path


def install() -> None:
    """Make `import torch` and `import torch.x.y` give this package's modules, the same objects.

    Raises ImportError if a real torch has been imported: tensors of two runtimes in one script would not mix.
    """
    if is_installed():
        return
    imported = sys.modules.get(_TORCH)
    if imported is not None and imported is not sys.modules.get(_PACKAGE):
        raise ImportError(
            f"cannot stand in for torch: it is already imported from {getattr(imported, '__file__', None)}. "
            f"Call {_PACKAGE}.as_torch.install() before anything imports torch",
            name=_TORCH,
        )
    sys.meta_path.insert(0, _alias)


def uninstall() -> None:
    """Undo `install()`: the next `import torch` looks for a real one. Modules imported meanwhile keep what they have."""
    if not is_installed():
        return
    sys.meta_path.remove(_alias)
    sys.modules[_PACKAGE].__name__ = _PACKAGE
    for name in [n for n in sys.modules if n == _FUNCTORCH or n.partition(".")[0] in (_TORCH, _TORCH_NPU)]:
        if sys.modules[name] is sys.modules.get(_ours(name)):
            del sys.modules[name]


@restoring
def installed(undo: Actions) -> None:
    """`import torch` gives this package inside the block, and afterwards what it gave before."""
    if not is_installed():
        undo.append(uninstall)
    install()


def environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment variables under which every Python process has the alias: `base`, or this process's, with two changed.

    `MINDTORCH_AS_TORCH=1` asks for it, and a folder in front of PYTHONPATH has the `sitecustomize` that obeys. Nothing is
    imported before torch is. A variable of "0" or none leaves a process as it is.
    """
    changed = dict(os.environ if base is None else base)
    source = str(Path(__file__).parents[1])
    kept = [entry for entry in changed.get("PYTHONPATH", "").split(os.pathsep) if entry and entry not in (_HOOK_FOLDER, source)]
    # The package must be found by the processes, too, wherever this one found it.
    changed["PYTHONPATH"] = os.pathsep.join([_HOOK_FOLDER, *kept, source])
    changed[_VARIABLE] = "1"
    return changed


@restoring
def _in_processes_too(undo: Actions) -> None:
    """Processes started inside the block have the alias."""
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", _VARIABLE)}
    for name, value in before.items():
        undo.append(partial(os.environ.pop, name, None) if value is None else partial(os.environ.__setitem__, name, value))
    os.environ.update(environment())


def run_module(name: str, arguments: Sequence[str] = ()) -> dict[str, object]:
    """Run a module or package as `python -m name arguments ...` would, with `torch` being this package; returns its globals."""
    argv = sys.argv
    with installed(), _in_processes_too():
        try:
            sys.argv = [name, *arguments]
            # An alias has no code to run: `-m torch.distributed.run` is the module that it stands for.
            real = f"{__package__}{name.removeprefix('torch')}" if name.partition(".")[0] == "torch" else name
            return runpy.run_module(real, run_name="__main__", alter_sys=True)
        finally:
            sys.argv = argv


def run(script: str | os.PathLike[str], arguments: Sequence[str] = ()) -> dict[str, object]:
    """Run a script as `python script arguments ...` would, with `torch` being this package; returns its globals."""
    path = os.fspath(script)
    # `__file__` is absolute and `sys.argv[0]` as it was given, as Python has them; runpy gives both the same.
    main = ModuleType("__main__")
    main.__file__ = os.path.abspath(path)
    main.__dict__.update(__builtins__=builtins, __cached__=None)
    with open(path, "rb") as file:
        code = compile(file.read(), main.__file__, "exec")
    argv, first, outer = sys.argv, sys.path[0], sys.modules["__main__"]
    with installed(), _in_processes_too():
        try:
            sys.argv = [path, *arguments]
            sys.path[0] = os.path.dirname(main.__file__)
            sys.modules["__main__"] = main
            exec(code, main.__dict__)
        finally:
            sys.argv, sys.path[0], sys.modules["__main__"] = argv, first, outer
    return main.__dict__


def _main() -> None:
    # This file runs as __main__: a script that asks `as_torch` about the alias must meet the one that installed it.
    this = importlib.import_module(f"{_PACKAGE}.as_torch")
    match sys.argv[1:]:
        case ["-m", name, *arguments]:
            this.run_module(name, arguments)
        case [script, *arguments] if not script.startswith("-"):
            this.run(script, arguments)
        case _:
            sys.exit(
                f"usage: python -m {_PACKAGE}.as_torch script.py [arguments ...]\n"
                f"       python -m {_PACKAGE}.as_torch -m module [arguments ...]"
            )


if __name__ == "__main__":
    _main()
