"""listen(): a page about a running process, its statistics as JSON, and metrics for Prometheus, by HTTP on this machine."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from urllib.parse import urlsplit

from ..._core.cpython import without_signals_at_entry
from .._io.strict_json import dumps
from ..recording.hidden_threads import hide_thread
from .meter import Meter
from .metrics import PROMETHEUS_TYPE, prometheus

_ROWS = 50
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'"
_FILES = {"/": ("page.html", "text/html"), "/page.js": ("page.js", "text/javascript"), "/page.css": ("page.css", "text/css")}


class Page:
    """Counts ops and serves them until close(). `url` is where the page is. A forked child serves nothing."""

    def __init__(self, port: int, host: str) -> None:
        self._process = os.getpid()
        self._server = _Server((host, port), _Handler)
        self._server.meter = Meter()
        bound = self._server.server_address
        self.url = f"http://{bound[0]!s}:{bound[1]}/"
        self._server.hosts = {f"{name}:{bound[1]}" for name in (host, str(bound[0]), "localhost", "127.0.0.1")}
        self._server.meter.start()
        self._thread = threading.Thread(target=self._serve, name="profiler page", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def _serve(self) -> None:
        hide_thread()
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """End: nothing is counted or served any more."""
        atexit.unregister(self.close)
        if self._process != os.getpid() or not self._thread.is_alive():
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._server.meter.stop()

    def __enter__(self) -> Page:
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: object) -> None:
        self.close()


def listen(port: int = 0, host: str = "127.0.0.1") -> Page:
    """Serve a page about this process: what its ops take, now and since the beginning, while it runs.

    port: 0 takes a free one, which `url` of the result tells. host: only this machine reaches the default. There is no
    password: all who reach the address see the names of ops and ranges. `/metrics` is for Prometheus, `/stats.json` for
    programs.
    """
    if not 0 <= port < 1 << 16:
        raise ValueError(f"a port is between 0 and 65535, not {port}")
    return Page(port, host)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    meter: Meter
    hosts: set[str]


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10

    def setup(self) -> None:
        """Begin a connection, on a thread of its own."""
        hide_thread()
        super().setup()

    def do_GET(self) -> None:
        """Answer a request."""
        path = urlsplit(self.path).path
        # A page of another site whose name was made to mean this machine would send that name.
        if self.client_address[0] == "127.0.0.1" and self.headers.get("Host", "") not in self.server.hosts:
            self.send_error(421)
        elif path in _FILES:
            name, kind = _FILES[path]
            self._send(resources.files(__package__).joinpath("assets", name).read_bytes(), f"{kind}; charset=utf-8")
        elif path == "/stats.json":
            self._send(dumps(self.server.meter.figures(_ROWS)).encode(), "application/json")
        elif path == "/metrics":
            self._send(prometheus(self.server.meter.stats()).encode(), PROMETHEUS_TYPE)
        else:
            self.send_error(404)

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", _POLICY),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: standard error is the program's."""
