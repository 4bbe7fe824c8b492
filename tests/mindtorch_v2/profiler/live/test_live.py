"""Processes that run: the control socket with mtprof top and attach, the page, MTPROF, and what other systems are sent."""

from __future__ import annotations

import gzip
import json
import os
import stat
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import arm, disarm, listen, load, profile
from mindtorch_v2.profiler.cli.commands.live.top import difference
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.live import client, control, environment, places
from mindtorch_v2.profiler.live.meter import REST
from mindtorch_v2.profiler.live.metrics import otlp, prometheus
from mindtorch_v2.profiler.retention.from_store import stats_of
from mindtorch_v2.profiler.retention.stats import AggregateRow, AggregateStats, Summary
from mindtorch_v2.profiler.store.store import EventStore

TRACE = os.path.join(os.path.dirname(__file__), "..", "fixtures", "mlp_everything.json.gz")


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    """Sockets of a test are its own. Paths of sockets are short: the folder has a short name."""
    folder = tmp_path / "r"
    folder.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield
    disarm()


@pytest.fixture
def training():
    """A thread that trains until the test ends; gives what waits for a number of its steps."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    ended, stepped = threading.Event(), threading.Semaphore(0)

    def train():
        while not ended.wait(0.001):
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()
            stepped.release()

    def wait_for_steps(count):
        while stepped.acquire(blocking=False):
            pass
        for _ in range(count):
            assert stepped.acquire(timeout=60)

    thread = threading.Thread(target=train, name="training")
    thread.start()
    yield wait_for_steps
    ended.set()
    thread.join()


def answer(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


# ------------------------------------------------------------------------------ the control socket


def test_the_socket_is_the_users_alone_and_goes_away():
    path = arm()
    assert arm() == path == places.socket_of(os.getpid()) and places.armed() == [os.getpid()]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    [status] = client.ask(os.getpid(), {"request": "status"})
    assert status["pid"] == os.getpid()
    disarm()
    assert not os.path.exists(path) and places.armed() == []


def test_a_process_that_was_killed_is_not_said_to_be_armed(capsys):
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    arm()
    Path(places.socket_of(process.pid)).touch()
    assert places.armed() == [os.getpid()]
    disarm()
    assert answer(capsys, "top", "1")[2].endswith("call profiler.arm() in it\n")


def test_a_folder_of_another_user_is_refused(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 1234567)
    with pytest.raises(OSError):
        places.private_folder()


@pytest.mark.parametrize("request_", [{"request": "quit"}, {}, {"request": "top", "interval": 0}, [1]])
def test_a_wrong_request_is_answered(request_):
    arm()
    with pytest.raises(RuntimeError, match="Error: "):
        list(client.ask(os.getpid(), request_))


def test_top(capsys, training, monkeypatch):
    wait = control._wait
    # On a busy machine a tenth of a second may pass without a step; the first of three may have begun before the look.
    monkeypatch.setattr(control, "_wait", lambda seconds, gone: wait(seconds, gone) or training(3))
    arm()
    code, out, _ = answer(capsys, "top", os.getpid(), "--interval", "0.1", "--count", "2", "--json", "-n", "3")
    assert code == 0
    for look in map(json.loads, out.splitlines()):
        assert look["pid"] == os.getpid() and look["steps"] > 0 and len(look["ops"]) == 3 < look["ops_in_all"]
        assert [op["self_ns"] for op in look["ops"]] == sorted((op["self_ns"] for op in look["ops"]), reverse=True)
    code, out, _ = answer(capsys, "top", "--interval", "0.1", "--count", "1", "-n", "2")
    assert code == 0 and "steps/s" in out and len(out.splitlines()) == 5


def test_what_changed_between_two_looks():
    before = {"seconds": 1.0, "steps": 3, "count": 5, "ops": [{"name": "a", "calls": 5, "self_ns": 10}]}
    ops = [
        {"name": "a", "calls": 5, "self_ns": 10, "p99_ns": 2},
        {"name": "b", "calls": 2, "self_ns": 500_000_000, "p99_ns": 3},
    ]
    since = difference(before, {"seconds": 3.0, "steps": 7, "count": 7, "ops": ops, "pid": 1, "command": "x"})
    assert (since["seconds"], since["steps"], since["calls"]) == (2.0, 4, 2)
    assert since["ops"] == [{"name": "b", "calls": 2, "self_ns": 500_000_000, "share": 0.25, "p99_ns": 3}]


def test_attach_writes_a_whole_file_without_the_profilers_threads(capsys, tmp_path, training):
    arm()
    path = tmp_path / "x.mtp"
    code, out, _ = answer(capsys, "attach", os.getpid(), "--steps", "3", "--stack", "--memory", "-o", path, "--json")
    told = json.loads(out)
    assert code == 0 and told["path"] == str(path) and told["steps"] == 3 and told["bytes"] == path.stat().st_size
    store = load(path).store
    assert len(store) == told["events"] and set(store.step.tolist()) == {0, 1, 2}
    updates = store.name == store.names.index("Optimizer.step#SGD.step")
    assert updates.sum() == 3 and store.end[~store.is_python].max() <= store.end[updates].max() + 10_000_000
    names = {store.threads[thread].name for thread in set(store.tid.tolist())}
    assert "training" in names and not any(name.startswith("profiler") for name in names)
    assert not any("threading.py" in name and "profiler" in name for name in store.names)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["top"], "mtprof top: no process is armed: start one with MTPROF=arm\n"),
        (["top", "1"], "mtprof top: process 1 is not armed: start it with MTPROF=arm, or call profiler.arm() in it\n"),
        (["attach", "1"], "mtprof attach: process 1 is not armed: "),
        (["attach", "1", "--seconds", "0"], "mtprof attach: --seconds must be above 0"),
        (["attach", "1", "-o", "x.json"], "mtprof attach: a saved profile is written, so 'x.json' must end in .mtp"),
    ],
)
def test_what_cannot_be_asked(capsys, arguments, said):
    code, out, err = answer(capsys, *arguments)
    assert code == 2 and out == "" and err.startswith(said)


def test_a_recording_that_cannot_be_written_is_told(capsys, tmp_path):
    arm()
    code, _, err = answer(capsys, "attach", os.getpid(), "--seconds", "0.1", "-o", tmp_path / "gone" / "x.mtp")
    assert code == 3 and "there is no folder" in err


# ------------------------------------------------------------------------------ MTPROF


@pytest.fixture
def opened():
    yield
    environment.close()


def test_the_variable_arms(opened):
    environment.open_from("1")
    assert places.armed() == [os.getpid()]
    environment.close()
    assert places.armed() == []


@pytest.mark.parametrize("words", ["listen=x", "arms", "arm,every=0", "otlp=file:///etc", "arm,listen=999999"])
def test_a_wrong_variable_is_a_warning(opened, words):
    with pytest.warns(RuntimeWarning, match="MTPROF="):
        environment.open_from(words)


def test_the_variable_opens_a_page(opened, capsys):
    environment.open_from("listen=0")
    url = capsys.readouterr().err.removeprefix("mtprof: ").strip()
    assert json.load(urlopen(url + "stats.json"))["pid"] == os.getpid()


# ------------------------------------------------------------------------------ the page


def test_the_page(training):
    with listen() as page:
        assert page.url.startswith("http://127.0.0.1:")
        for name in ("", "page.js", "page.css"):
            with urlopen(page.url + name) as got:
                assert "default-src 'none'" in got.headers["Content-Security-Policy"] and got.read()
        figures = json.load(urlopen(page.url + "stats.json"))
        while figures["steps"] < 2:
            figures = json.load(urlopen(page.url + "stats.json"))
        assert {"aten::linear", "Optimizer.step#SGD.step"} <= {op["name"] for op in figures["ops"]}
        metrics = urlopen(page.url + "metrics").read().decode()
        assert 'mtprof_op_seconds_count{op="aten::linear"}' in metrics
        for url, host, code in ((page.url + "other", None, 404), (page.url, "evil.example:80", 421)):
            with pytest.raises(HTTPError) as error:
                urlopen(Request(url, headers={"Host": host} if host else {}))
            assert error.value.code == code
            error.value.close()
    with pytest.raises(OSError):
        urlopen(page.url)


@pytest.mark.parametrize("port", [-1, 1 << 16])
def test_a_wrong_port(port):
    with pytest.raises(ValueError, match="a port is between"):
        listen(port)


# ------------------------------------------------------------------------------ for other systems


def rows_of(*names):
    summary = Summary(2, 3_000_000_000, 1_000_000_000, 2_000_000_000, {500: 1, 520: 1})
    return AggregateStats(
        [AggregateRow(name, "", "", 10**9 * (9 - at), 5, summary, summary) for at, name in enumerate(names)], 7
    )


def test_prometheus_text():
    text = prometheus(rows_of('a"b\\c\nd', "x", "y"), limit=2)
    assert 'mtprof_op_self_seconds_total{op="a\\"b\\\\c\\nd"} 9.000000000\n' in text
    assert "mtprof_steps_total 7\n" in text
    assert 'mtprof_op_seconds_count{op="x"} 2\n' in text and 'op="y"' not in text and f'op="{REST}"' in text
    for line in text.splitlines():
        assert line.startswith("#") or (line.count(" ") >= 1 and float(line.rpartition(" ")[2]) >= 0)


def test_otlp_json():
    [resource] = otlp(rows_of("x"), 1, 2)["resourceMetrics"]
    metrics = {metric["name"]: metric for metric in resource["scopeMetrics"][0]["metrics"]}
    [point] = metrics["mtprof.op.self_time"]["sum"]["dataPoints"]
    assert point["asDouble"] == 9.0 and point["timeUnixNano"] == "2" and point["startTimeUnixNano"] == "1"
    assert point["attributes"] == [{"key": "op", "value": {"stringValue": "x"}}]
    assert metrics["mtprof.steps"]["sum"] == {
        "aggregationTemporality": 2,
        "isMonotonic": True,
        "dataPoints": [{"startTimeUnixNano": "1", "timeUnixNano": "2", "asInt": "7"}],
    }
    assert metrics["mtprof.op.duration"]["summary"]["dataPoints"][0]["count"] == "2"


def test_statistics_of_a_recording_are_those_of_its_averages():
    stats = stats_of(load(TRACE).store).by_name()
    averages = [row for row in load(TRACE).key_averages() if row.key in stats]
    assert len(averages) > 20
    assert {row.key: row.count for row in averages} == {row.key: stats[row.key].count for row in averages}
    totals = {row.key: row.cpu_time_total for row in averages}
    assert {key: pytest.approx(stats[key].sum_ns / 1e3, abs=1) for key in totals} == totals


def test_python_time_counts_for_the_op_around():
    rows = [
        {"name": "inner.py(1): f", "kind": torch._dispatch.observer.PYTHON, "start": 10, "end": 40},
        {"name": "block", "start": 0, "end": 100},
    ]
    stats = stats_of(EventStore.from_rows(rows)).by_name()
    assert list(stats) == ["block"] and stats["block"].self_ns == 100


class Receiver(BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.command, self.path, self.headers["Content-Type"], body))
        self.send_response(500 if self.path == "/no" else 200)
        self.end_headers()

    def do_PUT(self):
        self.do_POST()

    def log_message(self, *args):
        pass


@pytest.fixture
def receiver():
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    server.got = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(("form", "method"), [("otlp", "POST"), ("prometheus", "PUT"), ("pprof", "POST")])
def test_push(capsys, receiver, form, method):
    url = f"http://127.0.0.1:{receiver.server_port}/in"
    code, out, _ = answer(capsys, "push", TRACE, "--as", form, "--to", url, "--json")
    assert code == 0 and {"url": url, "form": form}.items() <= json.loads(out).items()
    [(got, path, kind, body)] = receiver.got
    assert (got, path) == (method, "/in")
    if form == "otlp":
        assert kind == "application/json" and json.loads(body)["resourceMetrics"]
    elif form == "prometheus":
        assert kind.startswith("text/plain") and b'mtprof_op_seconds_count{op="aten::linear"}' in body
    else:
        assert b"aten::linear" in gzip.decompress(body)


def test_push_without_a_receiver(capsys, receiver):
    code, _, err = answer(capsys, "push", TRACE, "--as", "otlp", "--to", f"http://127.0.0.1:{receiver.server_port}/no")
    assert code == 3 and "500" in err
    code, _, err = answer(capsys, "push", TRACE, "--as", "otlp", "--to", "ftp://x")
    assert code == 2 and "not an address of http:// or https://" in err


def test_the_variable_pushes(opened, receiver):
    environment.open_from(f"otlp=http://127.0.0.1:{receiver.server_port}/v1/metrics,every=0.05")
    torch.ones(3).sum()
    environment.close()
    _, path, _, body = receiver.got[-1]
    assert path == "/v1/metrics" and b"aten::sum" in body


def test_a_profile_beside_a_page_has_its_own_events():
    with listen(), profile() as prof:
        torch.ones(3).sum()
    assert [row.key for row in prof.key_averages()].count("aten::sum") == 1
