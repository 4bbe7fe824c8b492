"""Public functions and classes of every public module below torch.distributed.

/path/to/python/with/torch tests/helpers/distributed_names.py --out FILE
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import pkgutil
import warnings
from pathlib import Path


def names() -> dict[str, list[str]]:
    """By path below torch: names that a module lists in __all__ or defines."""
    top = importlib.import_module("torch.distributed")
    found = {}
    for path in ["torch.distributed", *(info.name for info in pkgutil.walk_packages(top.__path__, "torch.distributed."))]:
        if any(part.startswith("_") for part in path.split(".")) or ".benchmarks" in path or ".examples" in path:
            continue
        try:
            module = importlib.import_module(path)
        except ImportError:  # needs a package that is not installed
            continue
        listed = [name for name in vars(module) if not name.startswith("_") and len(name) > 1 and _is_own(module, name)]
        if listed:
            found[path.removeprefix("torch.")] = sorted(listed)
    return found


def _is_own(module: object, name: str) -> bool:
    value = getattr(module, name)
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return False
    home = str(getattr(value, "__module__", ""))
    return name in getattr(module, "__all__", ()) or f"{home}.".startswith(f"{module.__name__}.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    warnings.simplefilter("ignore")
    parser.parse_args().out.write_text(json.dumps(names(), indent=1) + "\n")
