"""torch.hub: models from the network, which this runtime does not fetch. Local files load with torch.load."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any, NoReturn
from urllib.parse import urlparse  # noqa: F401 - libraries import it from here

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_settings: dict[str, str] = {}  # "dir": what set_dir() was told


HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the start of a file's SHA-256, which names of released weights hold


def _get_torch_home() -> str:
    """The folder where torch keeps what it caches: `$TORCH_HOME`, else `torch` in the cache folder of the user."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(home)


def get_dir() -> str:
    """The folder where downloads are kept."""
    return _settings["dir"] if "dir" in _settings else os.path.join(_get_torch_home(), "hub")


class _Progress:
    """What stands in for tqdm's bar where tqdm is not installed: counts, and prints nothing."""

    def __init__(self, total: int | None = None, disable: bool = False, unit: Any = None, *args: Any, **kwargs: Any) -> None:
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: int) -> None:
        """Count further."""
        self.n += n

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """Name the bar, which is not shown."""

    def close(self) -> None:
        """End it."""

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def __getattr__(name: str) -> Any:
    """`tqdm`, when it is asked for: the bar of that package, or one that does not show."""
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module("tqdm.auto").tqdm
    except ImportError:
        return _Progress


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
