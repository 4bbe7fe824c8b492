"""Dispatch keys: one bit each, or-ed over an op's tensors. Without any bit an op takes the short path of its entry."""

from __future__ import annotations

# AUTOGRAD is the lowest bit: `keys > AUTOGRAD` asks for any other key, and `keys & AUTOGRAD` is 0 or 1.
AUTOGRAD = 1  # requires grad
PYTHON = 2  # a subclass that wants to see the call (__torch_function__, __torch_dispatch__)
META = 4  # has a shape and no memory
NPU = 8  # lives on an Ascend device
SPARSE = 16  # indices and values instead of a dense buffer
BATCHED = 32  # stands for one sample inside vmap
CONJUGATED = 64  # its values are the conjugates of what its memory holds
NEGATED = 128  # its values are the negatives of what its memory holds

# Bits that decide where a kernel runs; a tensor has at most one.
BACKENDS = META | NPU | SPARSE

# Bits that say that the values are not what the memory holds: views as `conj()` makes them.
LAZY = CONJUGATED | NEGATED

NAMES = {
    AUTOGRAD: "Autograd",
    PYTHON: "Python",
    META: "Meta",
    NPU: "NPU",
    SPARSE: "Sparse",
    BATCHED: "Batched",
    CONJUGATED: "Conjugate",
    NEGATED: "Negative",
}


def key_names(keys: int) -> str:
    """The names of the keys in a set, joined by "+", as messages have them; "CPU" for none."""
    names = [name for bit, name in NAMES.items() if keys & bit] or ["CPU"]
    return "+".join(names)
