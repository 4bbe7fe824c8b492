"""Stores: each kind answers alike, waits with a limit, and survives what arrives at its port."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from rank_programs import free_port

from mindtorch_v2.distributed import (
    DistNetworkError,
    DistStoreError,
    FileStore,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    TCPStore,
)

SHORT = timedelta(milliseconds=20)
KINDS = ["hash", "file", "tcp", "prefix"]


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    return make(request.param, tmp_path)


def make(kind, folder):
    if kind == "hash":
        return HashStore()
    if kind == "file":
        return FileStore(folder / "store", 1)
    server = TCPStore("127.0.0.1", 0, 1, is_master=True)
    return PrefixStore("under", server) if kind == "prefix" else server


def test_values_counters_and_comparisons(store):
    store.set("a", "1")
    store.set("b", b"\x00\xff")
    assert (store.get("a"), store.get("b")) == (b"1", b"\x00\xff")
    assert (store.add("n", 3), store.add("n", -1), store.get("n")) == (3, 2, b"2")
    assert [store.compare_set("a", "1", "2"), store.compare_set("a", "9", "3")] == [b"2", b"2"]
    assert [store.compare_set("new", "", "q"), store.compare_set("none", "x", "q")] == [b"q", b"x"]
    assert store.check(["a", "n"]) and not store.check(["a", "missing"])
    assert (store.delete_key("a"), store.delete_key("a")) == (True, False)
    store.append("b", "!")
    store.multi_set(["u", "v"], ["1", b"2"])
    assert store.multi_get(["b", "u", "v"]) == [b"\x00\xff!", b"1", b"2"]
    assert sorted(store.list_keys()) == ["b", "n", "new", "u", "v"]


def test_waiting_has_a_limit(store):
    with pytest.raises(DistStoreError, match="wait timeout after 20ms, keys: .*one, .*two"):
        store.wait(["one", "two"], SHORT)
    store.set_timeout(SHORT)
    assert store.timeout == SHORT
    with pytest.raises(DistStoreError, match="missing"):
        store.get("missing")


def test_a_key_that_another_thread_sets_is_waited_for(store):
    threading.Timer(0.05, store.clone().set, ("late", "1")).start()
    assert store.get("late") == b"1"


def test_a_barrier_lets_all_go_together(store):
    others = [threading.Thread(target=store.clone().barrier, args=("here", 3)) for _ in range(2)]
    for other in others:
        other.start()
    store.barrier("here", 3, timedelta(seconds=120))
    for other in others:
        other.join(120)
    assert not any(other.is_alive() for other in others)


@pytest.mark.parametrize("kind", ["hash", "tcp", "prefix"])
def test_queues(kind, tmp_path):
    store = make(kind, tmp_path)
    store.queue_push("q", "1")
    store.queue_push("q", "2")
    assert (store.queue_len("q"), store.queue_pop("q"), store.queue_pop("q")) == (2, b"1", b"2")
    with pytest.raises(QueueEmptyError, match="queue is empty"):
        store.queue_pop("q", block=False)
    threading.Timer(0.05, store.clone().queue_push, ("q", "3")).start()
    assert store.queue_pop("q") == b"3"


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda store: store.set("a", 5), TypeError, "str or bytes, not int"),
        (lambda store: store.set(5, "a"), TypeError, "must be a str, not int"),
        (lambda store: store.set_timeout(3), TypeError, "timedelta"),
        (lambda store: store.multi_set(["a"], []), ValueError, "1 keys and 0 values"),
        (lambda store: (store.set("word", "x"), store.add("word", 1)), ValueError, "not a number"),
    ],
)
def test_bad_arguments(store, call, error, words):
    with pytest.raises(error, match=words):
        call(store)


def test_prefixes_nest_and_keep_apart():
    below = HashStore()
    one, two = PrefixStore("one", below), PrefixStore("x", PrefixStore("two", below))
    one.set("key", "1")
    two.set("key", "2")
    assert (one.get("key"), two.get("key"), below.get("two/x/key")) == (b"1", b"2", b"2")
    assert one.list_keys() == ["key"] and one.num_keys() == 2
    assert two.underlying_store.underlying_store is below is two._underlying_non_prefix_store
    with pytest.raises(TypeError, match="takes a Store"):
        PrefixStore("p", {})


def test_a_file_is_removed_by_its_last_user(tmp_path):
    path = tmp_path / "store"
    first, second = FileStore(path, 2), FileStore(path, 2)
    first.set("a", "1")
    assert second.get("a") == b"1"
    del first
    assert path.exists()
    del second
    assert not path.exists()


def test_a_file_that_is_no_store_is_refused(tmp_path):
    path = tmp_path / "notes"
    path.write_bytes(b"these are notes and nothing else")
    with pytest.raises(DistStoreError, match="not a file store"):
        FileStore(path, 1)
    assert path.read_bytes() == b"these are notes and nothing else"


def test_processes_share_a_tcp_store(tmp_path):
    server = TCPStore("127.0.0.1", 0, 1, is_master=True)
    code = (
        "from mindtorch_v2.distributed import TCPStore\n"
        f"store = TCPStore('127.0.0.1', {server.port})\n"
        "print(store.add('n', 1), store.get('from the server').decode())"
    )
    server.set("from the server", "hello")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert said.stdout.split() == ["1", "hello"], said.stderr
    assert server.get("n") == b"1"


def test_what_is_no_message_ends_its_connection_only():
    server = TCPStore("127.0.0.1", 0, 1, is_master=True)
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\x02\x00\x00\x00\x04\x00\x00\x00nope\x01\x00\x00\x000"):
        with socket.create_connection(("127.0.0.1", server.port), 10) as stranger:
            with contextlib.suppress(ConnectionError, OSError):  # the server may be quicker than the end of the message
                stranger.sendall(garbage)
                stranger.shutdown(socket.SHUT_WR)
                assert stranger.recv(64) == b""
    server.set("a", "1")
    assert server.get("a") == b"1"


def test_no_server_is_said_in_time():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DistNetworkError, match=f"failed to listen.* port: {port}"):
            TCPStore("127.0.0.1", port, 1, is_master=True)
    port = free_port()
    with pytest.raises(DistNetworkError, match=f"timed out after 50ms .*127.0.0.1, {port}"):
        TCPStore("127.0.0.1", port, 2, timeout=timedelta(milliseconds=50))


def test_the_master_waits_for_its_workers_and_tells_how_many_came():
    with pytest.raises(DistStoreError, match="1/2 clients joined"):
        TCPStore("127.0.0.1", 0, 2, is_master=True, timeout=timedelta(milliseconds=50))


def test_a_process_may_share_one_server():
    one = TCPStore("127.0.0.1", 0, 1, is_master=True, multi_tenant=True)
    two = TCPStore("127.0.0.1", one.port, 1, is_master=True, multi_tenant=True)
    one.set("a", "1")
    assert two.get("a") == b"1"
