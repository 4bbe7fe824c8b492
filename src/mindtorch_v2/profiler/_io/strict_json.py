"""JSON that every parser accepts: no NaN, no infinities, no halves of surrogate pairs."""

from __future__ import annotations

import json
import math
import re
from typing import Any

# In JSON of ASCII characters: an escaped backslash, a surrogate pair, or half of one.
_SURROGATES = re.compile(r"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})")


def dumps(value: Any, **options: Any) -> str:
    """json.dumps, but NaN and infinities become text, and halves of surrogate pairs the replacement character."""
    try:
        text = json.dumps(value, allow_nan=False, **options)
    except ValueError:
        text = json.dumps(_finite(value), allow_nan=False, **options)
    if "\x7f" in text:  # the one control character that JSON may have as it is
        text = text.replace("\x7f", "\\u007f")
    return _SURROGATES.sub(lambda match: "\\ufffd" if match[1] else match[0], text) if "\\ud" in text else text


def checked(text: str) -> str:
    """JSON text as strict JSON, to be put into a document; ValueError if it is not JSON."""
    return dumps(json.loads(text, parse_constant=_refuse))


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(_finite(key)) if isinstance(key, float) else key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value
