"""Runs a script under PyTorch's own profiler: the torch that is installed is imported here, and nowhere else."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import io
import os
from collections.abc import Callable
from typing import Any

from ..results.loaded import LoadedProfile
from ..results.torch_profiles import from_torch
from .exit_codes import USAGE, Failure
from .run_script import is_better, mute_schedule


class TorchSession:
    """torch.profiler of the installed torch, with all its activities; with a schedule the recording is its last window."""

    def __init__(self, options: dict[str, Any], schedule: tuple[int, int, int, int] | None = None) -> None:
        try:
            torch_profiler = importlib.import_module("torch.profiler")
            optim = importlib.import_module("torch.optim")
        except ImportError as error:
            raise Failure(f"--torch needs the torch of this environment, which cannot be imported: {error}", USAGE) from None
        self.recording: LoadedProfile | None = None
        self._optimizer_class: Any = None if schedule is None else optim.Optimizer
        when: Any = None
        if schedule is not None:
            wait, warmup, active, repeat = schedule
            mute_schedule()
            when = torch_profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=repeat)
        self._profile = torch_profiler.profile(schedule=when, on_trace_ready=self._keep, **options)
        self._stepping = True
        self._whole: LoadedProfile | None = None

    def start(self) -> None:
        """Begin to record, or to wait for the schedule."""
        if self._optimizer_class is not None:
            self._step_after(self._optimizer_class)
        self._profile.start()

    def stop(self, failed: bool) -> None:
        """End the recording, take over what it has, and choose the window that is kept."""
        self._stepping = False
        self._profile.stop()
        last, whole = self.recording, self._whole
        if self._optimizer_class is None or last is None or last is whole:
            return
        if not is_better(last.store, None if whole is None else whole.store, failed):
            self.recording = whole

    def _step_after(self, optimizer_class: Any) -> None:
        """Have step() of every optimizer that is made from now on step the schedule, once its own range has ended.

        PyTorch's hooks of optimizers run inside that range: a step that ended there would be without its optimizer's time.
        """
        with_range = optimizer_class.profile_hook_step

        def profile_hook_step(function: Callable[..., Any]) -> Callable[..., Any]:
            inner = with_range(function)

            @functools.wraps(inner)
            def step(*args: Any, **kwargs: Any) -> Any:
                result = inner(*args, **kwargs)
                if self._stepping:
                    self._profile.step()
                return result

            return step

        optimizer_class.profile_hook_step = staticmethod(profile_hook_step)

    def _keep(self, prof: Any) -> None:
        self.recording = from_torch(prof)
        if self._stepping:
            self._whole = self.recording

    @property
    def steps(self) -> int:
        """How many training steps were counted."""
        return int(self._profile.step_num)


def imports_torch(name: str, module: bool) -> bool:
    """Whether the source of a script, or of a module that is to be run, imports torch by name; False if it cannot be read."""
    path = _source_of(name) if module else name
    try:
        with io.open_code(path) as stream:
            tree = ast.parse(stream.read())
    except (OSError, SyntaxError, ValueError):
        return False
    return any(map(_names_torch, ast.walk(tree)))


def _source_of(module: str) -> str:
    """The file that `python -m module` runs, found without importing anything; "" if that is not known."""
    package, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return ""
    if spec is None:
        return ""
    if not spec.submodule_search_locations:
        return "" if rest else spec.origin or ""
    stem = os.path.join(spec.submodule_search_locations[0], *rest)
    return os.path.join(stem, "__main__.py") if os.path.isdir(stem) else f"{stem}.py"


def _names_torch(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == "torch" for alias in node.names)
    return isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").partition(".")[0] == "torch"
