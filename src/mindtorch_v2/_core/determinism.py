"""The switch `use_deterministic_algorithms`, and the alert of ops that torch has no deterministic implementation of."""

from __future__ import annotations

import warnings

from .cpython import stack_level

_OURS = __name__.partition(".")[0]
_REST = "to help us prioritize adding deterministic support for this operation."


class Determinism:
    """The settings of the process: whether only deterministic algorithms are wanted, and whether others only warn."""

    wanted = False
    warns = False


def alert_not_deterministic(name: str) -> None:
    """RuntimeError, or a warning, for an op whose results depend in torch on the order in which threads write.

    They do not here; the programs that ask are those that want to hear of it before they run elsewhere.
    """
    if not Determinism.wanted:
        return
    if not Determinism.warns:
        raise RuntimeError(
            f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. "
            "You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's "
            "acceptable for your application. You can also file an issue at https://github.com/pytorch/pytorch/issues " + _REST
        )
    warnings.warn(
        f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True, "
        f"warn_only=True)'. You can file an issue at https://github.com/pytorch/pytorch/issues {_REST}",
        UserWarning,
        stacklevel=stack_level(_OURS),
    )
