"""The modules that torch keeps its distributions in, one for each: `from torch.distributions.normal import Normal`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_IRREGULAR = {
    "LKJCholesky": "lkj_cholesky",
    "StudentT": "studentT",
    "ExponentialFamily": "exp_family",
    "RelaxedOneHotCategorical": "relaxed_categorical",
    "OneHotCategoricalStraightThrough": "one_hot_categorical",
    "TransformedDistribution": "transformed_distribution",
    "FisherSnedecor": "fishersnedecor",
    "LowRankMultivariateNormal": "lowrank_multivariate_normal",
    "LogitRelaxedBernoulli": "relaxed_bernoulli",
    "ExpRelaxedCategorical": "relaxed_categorical",
}


def home_of(name: str) -> str:
    """The name of the module that torch has a class in: `MultivariateNormal` -> `multivariate_normal`."""
    return _IRREGULAR.get(name) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def module_of(package: str, name: str) -> Any:
    """A module of the package that was imported."""
    return sys.modules[f"{package}.{name}"]


def _names_beside(path: str, *files: ModuleType) -> Callable[[str], Any]:
    """`__getattr__` of a made-up module: libraries take from it what torch's file imports, too, `Distribution` and helpers."""

    def look_up(name: str) -> Any:
        for file in files:
            if name in vars(file):
                return vars(file)[name]
        raise AttributeError(f"module '{path}' has no attribute '{name}'")

    return look_up


def install(package: str, classes: dict[str, Any]) -> None:
    """Make each class importable from a module of its own, where the package has none of that name.

    That is also where a class says it is from, which is what pickles name.
    """
    for name, held in classes.items():
        path = f"{package}.{home_of(name)}"
        module = sys.modules.get(path)
        if module is None:
            module = ModuleType(path, f"{name}, where torch keeps it.")
            module.__spec__ = ModuleSpec(path, None)
            shared = [module_of(package, file) for file in ("distribution", "utils")]
            module.__dict__["__getattr__"] = _names_beside(path, sys.modules[held.__module__], *shared)
            sys.modules[path] = module
            setattr(sys.modules[package], home_of(name), module)
        if not hasattr(module, name):
            setattr(module, name, held)
        held.__module__ = path
