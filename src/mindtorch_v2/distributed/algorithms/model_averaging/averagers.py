"""torch.distributed.algorithms.model_averaging.averagers: names that libraries import."""

from __future__ import annotations

from ..._absent import absent_class

__all__ = ["ModelAverager", "PeriodicModelAverager"]

ModelAverager = absent_class(__name__, "ModelAverager")
PeriodicModelAverager = absent_class(__name__, "PeriodicModelAverager")
