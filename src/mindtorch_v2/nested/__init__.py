"""torch.nested: tensors whose rows have different lengths, which there are none of: each function says so when it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor"]


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch.nested.{name}: there are no nested tensors. Rows of different lengths are held by "
            "nn.utils.rnn.pad_sequence with a mask, or by packed sequences. See docs/compatibility.md"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "NotImplementedError: there are no nested tensors."
    return refuse


as_nested_tensor = _refusing("as_nested_tensor")
masked_select = _refusing("masked_select")
narrow = _refusing("narrow")
nested_tensor = _refusing("nested_tensor")
nested_tensor_from_jagged = _refusing("nested_tensor_from_jagged")
to_padded_tensor = _refusing("to_padded_tensor")
