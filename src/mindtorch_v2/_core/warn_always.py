"""Whether warnings that are given once are given every time."""

from __future__ import annotations


class Always:
    """The setting of the process, `torch.set_warn_always`."""

    on = False
