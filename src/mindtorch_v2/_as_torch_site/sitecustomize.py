"""Gives a process the alias of `mindtorch_v2.as_torch` when it first imports torch, if MINDTORCH_AS_TORCH asks for it.

Python runs this file at the start of each process that finds it on its path: `as_torch.environment()` puts it there. It hides
another `sitecustomize` on the path, and therefore runs that one, too.
"""

import importlib.machinery
import importlib.util
import os
import sys


class _OnDemand:
    """Installs the alias when torch, or its version, is first asked for: most processes never do."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ("torch", "torch_npu"):
            return None
        self._install()
        return importlib.util.find_spec(name)

    def find_distributions(self, context=None):
        if context is None or context.name is None or context.name.lower() != "torch":
            return []
        return self._install().find_distributions(context)

    def _install(self):
        sys.meta_path.remove(self)
        from mindtorch_v2 import as_torch

        as_torch.install()
        return sys.meta_path[0]


def _run_the_other():
    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry) != here]
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if found is not None and found.loader is not None:
        found.loader.exec_module(importlib.util.module_from_spec(found))


if os.environ.get("MINDTORCH_AS_TORCH", "0") not in ("", "0"):
    sys.meta_path.insert(0, _OnDemand())
_run_the_other()
