"""torch.backends.cudnn: not there; its flags can be set, as scripts do before they train."""

from __future__ import annotations

from ._flags import absent_backend

absent_backend(globals(), enabled=True, benchmark=False, deterministic=False, allow_tf32=True, benchmark_limit=10)


def version() -> None:
    """The library's version: there is none."""
    return


def is_acceptable(tensor: object) -> bool:
    """Whether cuDNN could work on a tensor: never."""
    return False
