"""torch.hub: models from the network, which this runtime does not fetch. Local files load with torch.load."""

from __future__ import annotations

import os
from typing import Any, NoReturn

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_settings: dict[str, str] = {}  # "dir": what set_dir() was told


def get_dir() -> str:
    """The folder where downloads are kept."""
    if "dir" in _settings:
        return _settings["dir"]
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Choose the folder where downloads are kept."""
    _settings["dir"] = os.path.expanduser(d)


def _not_fetched(what: str) -> NoReturn:
    raise NotImplementedError(f"torch.hub.{what}: nothing is fetched from the network; download the file and use torch.load")


def load(repo_or_dir: Any, model: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Run an entry point of a repository: not supported."""
    _not_fetched("load")


def list(github: str, *args: Any, **kwargs: Any) -> NoReturn:
    """The entry points of a repository: not supported."""
    _not_fetched("list")


def help(github: str, model: str, *args: Any, **kwargs: Any) -> NoReturn:
    """The help of an entry point: not supported."""
    _not_fetched("help")


def download_url_to_file(url: str, dst: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Fetch a file: not supported."""
    _not_fetched("download_url_to_file")


def load_state_dict_from_url(url: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Fetch and load a state dict: not supported."""
    _not_fetched("load_state_dict_from_url")
