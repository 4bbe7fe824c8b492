"""The program `mtprof`: commands that read recordings load the profiler's reader, and not the runtime with its ops.

Importing `mindtorch_v2.profiler.cli` would import `mindtorch_v2` first, a thousand ops with it. So the two packages around the
reader are put into place unexecuted: their modules can be imported, and the first use of a name that only the whole package has
executes it (`mindtorch_v2._whole.load_runtime`, or an attribute such as `mindtorch_v2.Tensor`).
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

_PACKAGES = ("mindtorch_v2", "mindtorch_v2.profiler")
# Commands that run programs or talk to running ones need the runtime from the start.
_WITH_RUNTIME = frozenset({"run", "demo", "top", "attach", "push", "mcp", "ceilings", "replay", "what-if"})


def main() -> int:
    """Run one command; returns the exit code."""
    if len(sys.argv) > 1 and sys.argv[1] not in _WITH_RUNTIME and not any(name in sys.modules for name in _PACKAGES):
        packages = [_unexecuted(name) for name in _PACKAGES]
        vars(packages[0])["profiler"] = packages[1]
    from mindtorch_v2.profiler.cli.main import main as run

    return run()


def _unexecuted(name: str) -> ModuleType:
    """A package whose __init__ has yet to run: when a name is asked for that no module of it has set."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"there is no package {name!r}", name=name)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    loader = spec.loader

    def whole(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        vars(module).pop("__getattr__", None)
        loader.exec_module(module)
        return getattr(module, attribute)

    vars(module)["__getattr__"] = whole
    return module


if __name__ == "__main__":
    sys.exit(main())
