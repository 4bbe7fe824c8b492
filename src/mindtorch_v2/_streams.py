"""torch.Stream and torch.Event on the CPU, where ops have finished when they return: nothing to wait for."""

from __future__ import annotations

from typing import Any, NoReturn

from ._core.device import device as Device


def _on_cpu(kind: str, device: Any) -> Device:
    chosen = Device("cpu" if device is None else device)
    if chosen.type == "npu":
        raise NotImplementedError(f"torch.{kind} on an NPU: use torch.npu.{kind}")
    if chosen.type != "cpu":
        raise RuntimeError(f"PyTorch is not linked with support for {chosen.type} devices")
    return chosen


class Stream:
    """The CPU's one stream, in which ops run one after the other."""

    __module__ = "mindtorch_v2"

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        self.device = _on_cpu("Stream", device)
        self.priority = priority
        self.stream_id = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass

    def query(self) -> bool:
        """Whether all work is done: it is."""
        return True

    def synchronize(self) -> None:
        """Wait for all work: there is none."""

    def wait_event(self, event: Event) -> None:
        """Wait for a mark, which was not recorded."""

    def wait_stream(self, stream: Stream) -> NoReturn:
        raise RuntimeError("cpu backend doesn't support events.")

    def record_event(self, event: Event | None = None) -> NoReturn:
        raise RuntimeError("cpu backend doesn't support events.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return hash(Stream)

    def __repr__(self) -> str:
        return "torch.Stream device_type=cpu, device_index=-1, stream_id=0"


class Event:
    """A mark that can be made and asked, as in torch; the CPU records none."""

    __module__ = "mindtorch_v2"

    def __init__(
        self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.device = _on_cpu("Event", device)
        self.event_id = 0
        self.enable_timing, self.blocking, self.interprocess = enable_timing, blocking, interprocess

    def query(self) -> bool:
        """Whether the work before the mark is done: it is."""
        return True

    def synchronize(self) -> None:
        """Wait for the work before the mark: there is none."""

    def record(self, stream: Stream | None = None) -> NoReturn:
        raise RuntimeError("cpu backend doesn't support events.")

    def wait(self, stream: Stream | None = None) -> None:
        """Have a stream wait for the mark, which was not recorded."""

    def elapsed_time(self, end_event: Event) -> NoReturn:
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise RuntimeError("cpu backend doesn't support events.")

    def __repr__(self) -> str:
        return "torch.Event device_type=cpu, device_index=-1, event_flag=0, event_id=0"
