"""Sends statistics and profiles to other systems by HTTP, once or every so often."""

from __future__ import annotations

import atexit
import os
import threading
import time
import warnings
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from .._io.strict_json import dumps
from ..recording.hidden_threads import hide_thread
from .meter import Meter
from .metrics import otlp

PATIENCE_S = 10.0


def post(url: str, body: bytes, content_type: str, method: str = "POST") -> None:
    """Send a body; OSError if there is no answer or one that says no, ValueError if the URL is not of http or https."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"{url!r} is not an address of http:// or https://")
    request = Request(url, body, {"Content-Type": content_type, "User-Agent": "mtprof"}, method=method)
    with urlopen(request, timeout=PATIENCE_S) as answer:  # an answer above 299 raises HTTPError, an OSError
        answer.read()


def reason(error: OSError) -> str:
    """Why something was not sent: what the system says, without the names of Python's classes around it."""
    inner = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
    return (isinstance(inner, OSError) and inner.strerror) or str(inner)


class Pusher:
    """Counts ops from now on, and sends the statistics to an OTLP address every so many seconds and at exit.

    A receiver that does not answer is told of by one warning; sending goes on.
    """

    def __init__(self, url: str, every_s: float) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError(f"{url!r} is not an address of http:// or https://")
        self._url, self._every = url, every_s
        self._process = os.getpid()
        self._started_ns = time.time_ns()
        self._warned = False
        self._end = threading.Event()
        self._meter = Meter()
        self._meter.start()
        self._thread = threading.Thread(target=self._work, name="profiler push", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def send(self) -> None:
        """Send what was counted so far."""
        try:
            body = dumps(otlp(self._meter.stats(), self._started_ns, time.time_ns()))
            post(self._url, body.encode(), "application/json")
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(f"statistics could not be sent to {self._url!r}: {reason(error)}", RuntimeWarning, stacklevel=2)

    def close(self) -> None:
        """Send for the last time, and end."""
        atexit.unregister(self.close)
        if self._end.is_set() or self._process != os.getpid():
            return
        self._end.set()
        self._thread.join(PATIENCE_S)
        self.send()
        self._meter.stop()

    def _work(self) -> None:
        hide_thread()
        while not self._end.wait(self._every):
            self.send()
