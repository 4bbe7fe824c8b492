"""Lines of the user's code: which files are the user's, and the innermost of a stack's frames that is in one."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections import Counter
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...store.store import EventStore

# Frames of the framework begin with these: files are recorded relative to sys.path.
FRAMEWORK = ("mindtorch_v2/", "torch/", "<built-in", "<frozen")
# Neither are these the user's, wherever they are installed: a trace may come from another machine.
_LIBRARIES = frozenset(
    (
        *("numpy", "scipy", "pandas", "sklearn", "PIL", "tqdm", "triton", "functorch"),
        *("torchaudio", "torchvision", "torchmetrics", "timm", "ignite", "fairscale", "deepspeed"),
        *("lightning", "lightning_fabric", "pytorch_lightning"),
        *("transformers", "accelerate", "datasets", "diffusers", "peft", "trl"),
    )
)
_FRAME = re.compile(r"(?P<file>.*?)\((?P<line>\d+)\)(?:: (?P<function>.*))?", re.DOTALL)
_COMMANDS = frozenset({"mtprof", "pytest", "ipython", "accelerate", "torchrun"})


class Frame(NamedTuple):
    """A frame of a stack in its parts: "train.py(12): step"."""

    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        """The line as findings name it: "train.py(12)"."""
        return f"{self.file}({self.line})"


@cache
def parsed(text: str) -> Frame | None:
    """The parts of a frame or of the name of a Python call; None of a builtin and of other text."""
    match = None if text.startswith("<built-in") else _FRAME.fullmatch(text)
    return None if match is None else Frame(match["file"], int(match["line"]), match["function"] or "")


def is_framework(file: str) -> bool:
    """Whether a file is this package's or PyTorch's."""
    path = file.replace("\\", "/")
    return path.startswith(FRAMEWORK) or any(f"-packages/{start}" in path for start in FRAMEWORK)


@cache
def is_users(file: str) -> bool:
    """Whether a file is the user's: not the framework's, not an installed package's, not the standard library's."""
    path = file.replace("\\", "/")
    if path.startswith("<") or is_framework(path) or "-packages/" in path or os.path.basename(path) in _COMMANDS:
        return False
    if os.path.isabs(file):
        return not path.startswith(_standard_folder())
    top, _, inner = path.partition("/")
    name = top if inner else top.removesuffix(".py")
    if name in _LIBRARIES and inner:
        return False
    # A file of the working directory is the user's, whatever its name.
    if os.path.exists(file):
        return True
    return name not in sys.stdlib_module_names and not _is_installed(top)


@cache
def _standard_folder() -> str:
    return sysconfig.get_path("stdlib").replace("\\", "/") + "/"


@cache
def _is_installed(top: str) -> bool:
    """Whether the environment has a package, or a module, of this name."""
    return any(os.path.exists(os.path.join(folder, top)) for folder in sys.path if folder.endswith("-packages"))


def user_frame(frames: tuple[str, ...]) -> str | None:
    """The innermost frame that is the user's: "train.py(12)"."""
    for text in frames:
        frame = parsed(text)
        if frame is not None and is_users(frame.file):
            return frame.place
    return None


def places(store: EventStore, rows: NDArray[np.intp]) -> list[tuple[str, int]]:
    """The user's lines above the rows with the number of rows each, most frequent first; empty without stacks."""
    numbers, counts = np.unique(store.call_stack[rows], return_counts=True)
    lines: Counter[str] = Counter()
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        frame = user_frame(store.stacks[number]) if number >= 0 else None
        if frame is not None:
            lines[frame] += count
    return lines.most_common()
