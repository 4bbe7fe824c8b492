"""Send a recording to a monitoring system.

Statistics by op for Prometheus and OpenTelemetry, a profile for systems that read pprof. Without an address it is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable

from ...._io.strict_json import dumps
from ....live.metrics import MOST_OPS, PROMETHEUS_TYPE, otlp, prometheus
from ....live.push import post, reason
from ....results import writers
from ....retention.from_store import stats_of
from ....store.store import EventStore
from ... import reading
from ...exit_codes import FINE, USAGE, Failure

EXAMPLE = "mtprof push nightly.mtp --as otlp --to http://localhost:4318/v1/metrics"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument(
        "--to", dest="url", default=None, metavar="URL", help="address to send it to; without one it is printed"
    )
    parser.add_argument("--as", dest="form", choices=_FORMS, required=True, help="what to send")
    reading.add_limit(parser, MOST_OPS, "ops")
    parser.add_argument("--json", dest="sent_json", action="store_true", help="tell what was sent as JSON (with --to)")


def run(args: argparse.Namespace) -> int:
    """Send it, or print it."""
    if args.sent_json and args.url is None:
        raise Failure("--json tells what was sent: say with --to where that is", USAGE)
    store = reading.open_recording(args.path).store
    body, content_type, method = _FORMS[args.form](store, args.limit)
    if args.url is None:
        if args.form == "pprof" and sys.stdout.isatty():
            raise Failure("a profile for pprof is no text: give an address, or send the output to a file", USAGE)
        sys.stdout.buffer.write(body)
        return FINE
    try:
        post(args.url, body, content_type, method)
    except ValueError as error:
        raise Failure(str(error), USAGE) from None
    except OSError as error:
        raise Failure(f"nothing was sent to {args.url}: {reason(error)}") from None
    if args.sent_json:
        print(dumps({"url": args.url, "form": args.form, "bytes": len(body), "events": len(store)}))
    else:
        print(f"mtprof: sent {len(body):,} bytes to {args.url}", file=sys.stderr)
    return FINE


Body = tuple[bytes, str, str]  # what is sent, its type, and the method of HTTP


def _prometheus(store: EventStore, limit: int) -> Body:
    return prometheus(stats_of(store), limit).encode(), PROMETHEUS_TYPE, "PUT"  # as the Pushgateway wants it


def _otlp(store: EventStore, limit: int) -> Body:
    began, lasted = store.wall_start_ns, store.clock_end_ns - store.clock_start_ns
    return dumps(otlp(stats_of(store), began, began + lasted, limit)).encode(), "application/json", "POST"


def _pprof(store: EventStore, limit: int) -> Body:
    with tempfile.TemporaryDirectory(prefix="mtprof-") as folder:
        path = os.path.join(folder, "profile.pb.gz")
        writers.get("pprof")(store, path)
        with open(path, "rb") as file:
            return file.read(), "application/octet-stream", "POST"


_FORMS: dict[str, Callable[[EventStore, int], Body]] = {"otlp": _otlp, "pprof": _pprof, "prometheus": _prometheus}
