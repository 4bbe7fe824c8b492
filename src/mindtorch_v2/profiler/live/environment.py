"""MTPROF: what a process that was started with this variable opens, and arm(), which programs call themselves.

    MTPROF=arm python train.py                        # for mtprof top and mtprof attach
    MTPROF=listen=9400 python train.py                # a page and metrics on http://127.0.0.1:9400
    MTPROF=arm,otlp=http://collector:4318/v1/metrics,every=15 python train.py

Words are separated by commas; a wrong one is a warning, and the program runs on.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .control import Control

VARIABLE = "MTPROF"
_control: Control | None = None
_opened: list[Callable[[], None]] = []  # close() of what the variable opened


def arm() -> str:
    """Open the control socket of this process, which `mtprof top` and `mtprof attach` talk to; returns its path.

    Nothing is recorded until one of them asks. Only this user can reach the socket; it is removed at exit. A second call
    changes nothing.
    """
    from .control import Control

    global _control  # one socket a process  # noqa: PLW0603
    if _control is None or _control._process != os.getpid() or _control._ending:
        _control = Control()
    return _control.path


def disarm() -> None:
    """Close the control socket, if there is one."""
    if _control is not None:
        _control.close()


def open_from(words: str) -> None:
    """Open what the value of MTPROF asks for."""
    follow_variable(VARIABLE, words, _open)


def follow_variable(name: str, value: str, follow: Callable[[str], None]) -> None:
    """Do what a variable of the environment asks for; what cannot be done is a warning, and the program runs on.

    Workers of `multiprocessing` do nothing: such a variable is about the program's main process.
    """
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        return
    try:
        follow(value)
    except (OSError, ValueError, NotImplementedError) as error:
        warnings.warn(f"{name}={value!r}: {error}", RuntimeWarning, stacklevel=3)


def close() -> None:
    """Close all that the variable opened."""
    while _opened:
        _opened.pop()()


def _open(words: str) -> None:
    settings = dict(_setting(word) for word in words.split(",") if word.strip())
    unknown = [name for name in settings if name not in ("arm", "listen", "otlp", "every")]
    if unknown:
        raise ValueError(f"unknown {', '.join(unknown)}: known are arm, listen=PORT, listen=HOST:PORT, otlp=URL, every=SECONDS")
    every = _seconds(settings.get("every", "15"))
    if "arm" in settings:
        arm()
        _opened.append(disarm)
    if "listen" in settings:
        from .page import listen

        host, _, port = settings["listen"].rpartition(":")
        if not port.isdecimal():
            raise ValueError(f"listen={settings['listen']} is no port")
        page = listen(int(port), host or "127.0.0.1")
        print(f"mtprof: {page.url}", file=sys.stderr, flush=True)
        _opened.append(page.close)
    if "otlp" in settings:
        from .push import Pusher

        _opened.append(Pusher(settings["otlp"], every).close)


def _setting(word: str) -> tuple[str, str]:
    name, _, value = word.strip().partition("=")
    return ("arm", "") if name in ("1", "on", "arm") and not value else (name, value)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(f"every={text} is no number of seconds")
    return seconds
