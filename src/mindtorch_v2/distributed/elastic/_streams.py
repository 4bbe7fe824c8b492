"""What processes print: which of their two streams are redirected or copied."""

from __future__ import annotations

import enum
import re


class Std(enum.IntFlag):
    """Streams of a process that are redirected or copied."""

    NONE, OUT, ERR = 0, 1, 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """The value of --redirects and --tee, as `parse_streams` reads it."""
        value = parse_streams(vm)
        return {rank: cls(each) for rank, each in value.items()} if isinstance(value, dict) else cls(value)


def parse_streams(text: str) -> int | dict[int, int]:
    """The value of --redirects and --tee: 0 none, 1 stdout, 2 stderr, 3 both; for all, or "rank:value,rank:value"."""
    if re.fullmatch(r"\d", text):
        return _stream_number(text)
    if not re.fullmatch(r"(\d:[0123],)*(\d:[0123],?)", text):
        raise ValueError(f"std value string: <{text}> does not match: <^\\d:[0123],)*(\\d:[0123],?)$>")
    return {int(rank): _stream_number(value) for rank, _, value in (part.partition(":") for part in text.split(",") if part)}


def _stream_number(text: str) -> int:
    if text not in "0123":
        raise ValueError(f"{text} is not a valid Std")
    return int(text)
