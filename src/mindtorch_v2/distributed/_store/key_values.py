"""The table behind every store: keys with bytes, waiting with a time limit, queues. One table serves any number of threads."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from .._errors import DistStoreError, QueueEmptyError


class KeyValues:
    """Bytes by key. `execute` runs one operation at a time; those that wait let others run meanwhile."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.queues: dict[bytes, deque[bytes]] = {}
        self.changed = threading.Condition()

    def execute(self, operation: str, arguments: Sequence[bytes], timeout_s: float) -> list[bytes]:
        """The result of an operation, a list of bytes; DistStoreError if what it waits for does not come in time."""
        with self.changed:
            method: Callable[..., list[bytes]] = getattr(self, f"_{operation}")
            return method(timeout_s, *arguments)

    def _wait_for(self, ready: Callable[[], bool], timeout_s: float, keys: Sequence[bytes]) -> None:
        if not self.changed.wait_for(ready, timeout_s):
            missing = ", ".join(key.decode(errors="replace") for key in keys if key not in self.values)
            raise DistStoreError(f"wait timeout after {round(timeout_s * 1000)}ms, keys: {missing}")

    def _set(self, timeout_s: float, key: bytes, value: bytes) -> list[bytes]:
        self.values[key] = value
        self.changed.notify_all()
        return []

    def _get(self, timeout_s: float, key: bytes) -> list[bytes]:
        self._wait_for(lambda: key in self.values, timeout_s, [key])
        return [self.values[key]]

    def _wait(self, timeout_s: float, *keys: bytes) -> list[bytes]:
        self._wait_for(lambda: all(key in self.values for key in keys), timeout_s, keys)
        return []

    def _add(self, timeout_s: float, key: bytes, amount: bytes) -> list[bytes]:
        try:
            total = int(self.values.get(key, b"0")) + int(amount)
        except ValueError:
            raise ValueError(f"add: the value of {key.decode(errors='replace')!r} is not a number") from None
        return [*self._set(timeout_s, key, b"%d" % total), b"%d" % total]

    def _compare_set(self, timeout_s: float, key: bytes, expected: bytes, desired: bytes) -> list[bytes]:
        current = self.values.get(key)
        if current is None and expected:
            return [expected]
        if current is None or current == expected:
            self._set(timeout_s, key, desired)
            return [desired]
        return [current]

    def _delete_key(self, timeout_s: float, key: bytes) -> list[bytes]:
        return [b"%d" % (self.values.pop(key, None) is not None)]

    def _check(self, timeout_s: float, *keys: bytes) -> list[bytes]:
        return [b"%d" % all(key in self.values for key in keys)]

    def _num_keys(self, timeout_s: float) -> list[bytes]:
        return [b"%d" % len(self.values)]

    def _list_keys(self, timeout_s: float) -> list[bytes]:
        return list(self.values)

    def _append(self, timeout_s: float, key: bytes, value: bytes) -> list[bytes]:
        return self._set(timeout_s, key, self.values.get(key, b"") + value)

    def _multi_get(self, timeout_s: float, *keys: bytes) -> list[bytes]:
        deadline = time.monotonic() + timeout_s
        return [self._get(max(deadline - time.monotonic(), 0.0), key)[0] for key in keys]

    def _multi_set(self, timeout_s: float, *pairs: bytes) -> list[bytes]:
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            self._set(timeout_s, key, value)
        return []

    def _queue_push(self, timeout_s: float, key: bytes, value: bytes) -> list[bytes]:
        self.queues.setdefault(key, deque()).append(value)
        self.changed.notify_all()
        return []

    def _queue_pop(self, timeout_s: float, key: bytes, block: bytes) -> list[bytes]:
        if block == b"1":
            self._wait_for(lambda: bool(self.queues.get(key)), timeout_s, [key])
        queue = self.queues.get(key)
        if not queue:
            raise QueueEmptyError("queue is empty")
        value = queue.popleft()
        if not queue:
            del self.queues[key]
        return [value]

    def _queue_len(self, timeout_s: float, key: bytes) -> list[bytes]:
        return [b"%d" % len(self.queues.get(key, ()))]
