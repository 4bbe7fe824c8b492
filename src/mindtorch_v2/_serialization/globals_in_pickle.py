"""The global names that a pickle mentions, found by reading its opcodes. Nothing is imported or called."""

from __future__ import annotations

import pickletools

_TEXT = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE", "STRING", "BINSTRING", "SHORT_BINSTRING")
_KEPT = ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE")
_FETCHED = ("GET", "BINGET", "LONG_BINGET")


def names(data: bytes) -> set[tuple[str, str]]:
    """Pairs of module and name."""
    found: set[tuple[str, str]] = set()
    memo: dict[int, str | None] = {}
    texts: list[str | None] = []  # what was pushed last, None for what is no text
    for code, value, _ in pickletools.genops(data):
        if code.name in ("GLOBAL", "INST"):
            module, _, name = str(value).partition(" ")
            found.add((module, name))
            texts.append(None)
        elif code.name == "STACK_GLOBAL":
            if len(texts) >= 2 and texts[-1] is not None and texts[-2] is not None:
                found.add((texts[-2], texts[-1]))
            texts.append(None)
        elif code.name in _TEXT:
            texts.append(str(value))
        elif code.name in _KEPT:
            key = len(memo) if code.name == "MEMOIZE" else int(value or 0)
            memo[key] = texts[-1] if texts else None
        elif code.name in _FETCHED:
            texts.append(memo.get(int(value or 0)))
        elif code.stack_after:
            texts.append(None)
    return found
