"""torch.distributed.argparse_util: options of a command line whose defaults are variables, as those of torchrun are."""

from __future__ import annotations

import os
from argparse import Action, ArgumentParser, Namespace
from typing import Any

__all__ = ["check_env", "env"]


class env(Action):
    """An option that PET_<NAME> sets where the command line does not."""

    def __init__(self, dest: str, default: Any = None, required: bool = False, **kwargs: Any) -> None:
        default = os.environ.get(f"PET_{dest.upper()}", default)
        super().__init__(dest=dest, default=default, required=required and not default, **kwargs)

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        """Take the value."""
        setattr(namespace, self.dest, values)


class check_env(Action):
    """A switch that PET_<NAME>=1 turns on where the command line does not."""

    def __init__(self, dest: str, default: Any = False, **kwargs: Any) -> None:
        default = bool(int(os.environ.get(f"PET_{dest.upper()}", default)))
        super().__init__(dest=dest, const=True, default=default, nargs=0, **kwargs)

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        """Turn it on."""
        setattr(namespace, self.dest, self.const)
