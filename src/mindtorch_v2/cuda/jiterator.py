"""torch.cuda.jiterator: functions from CUDA code. They can be made, as in torch without a GPU, and refuse to be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._refused import refusing_function

_REASON = "kernels from CUDA code need a GPU, and none is available: compose the function of torch's ops"


def _create_jit_fn(code_string: str, **kwargs: Any) -> Callable[..., Any]:
    """The function that some CUDA code describes, which needs a GPU."""
    if not isinstance(code_string, str) or "template" not in code_string:
        raise ValueError(f"Couldn't parse code, please check correctness:\n {code_string}")
    return refusing_function("cuda.jiterator._create_jit_fn", _REASON)


def _create_multi_output_jit_fn(code_string: str, num_outputs: int, **kwargs: Any) -> Callable[..., Any]:
    """The same for functions with several results."""
    return _create_jit_fn(code_string, **kwargs)
