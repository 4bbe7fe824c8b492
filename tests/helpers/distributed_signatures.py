"""Parameters of every public function of torch.distributed, in torch or here.

python tests/helpers/distributed_signatures.py --package torch --out FILE
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
from pathlib import Path


def signatures(package: str) -> dict[str, list[str]]:
    """By name of a function that `distributed_c10d` exports: its parameters, with defaults."""
    module = importlib.import_module(f"{package}.distributed.distributed_c10d")
    functions = {name: getattr(module, name) for name in sorted(module.__all__)}
    return {
        name: [_shown(parameter, package) for parameter in inspect.signature(function).parameters.values()]
        for name, function in functions.items()
        if inspect.isfunction(function)
    }


def _shown(parameter: inspect.Parameter, package: str) -> str:
    default = "" if parameter.default is parameter.empty else f"={parameter.default}".replace(f"{package}.", "torch.")
    return f"{parameter.kind.name.lower()} {parameter.name}{default}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", default="torch")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.write_text(json.dumps(signatures(arguments.package), indent=1) + "\n")
