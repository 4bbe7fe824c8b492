"""torch.utils.model_zoo: older names of `torch.hub`."""

from __future__ import annotations

from ..hub import load_state_dict_from_url as load_url
from ..hub import tqdm

__all__ = ["load_url", "tqdm"]
