"""The zip archives that checkpoints are: records written as they are, aligned, and read within bounds."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

# An archive that was compressed afterwards may unpack to so many times its size, and to so many bytes in any case.
_MOST_RATIO, _FREE_BYTES = 250, 64 << 20
_DAMAGED_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    KeyError,
    ValueError,
    OverflowError,
    RuntimeError,
)
_LIMIT = 0xFFFFFFFF  # from this on a size or an offset is in the fields of zip64
_UTF8_NAMES = 0x800
_NEW_YEAR_1980 = 0x21
_PIECE = bytes(1 << 20)
_FLAGS_STORED = 0


class ArchiveWriter:
    """A zip file that is only appended to. `write` gets its pieces in order: bytes, or the memory of arrays."""

    def __init__(
        self, write: Callable[[Any], Any], folder: str = "archive", alignment: int = 64, compute_crc32: bool = True
    ) -> None:
        self._write = write
        self._folder = folder
        self._alignment = alignment
        self._compute_crc32 = compute_crc32
        self._at = 0
        self._entries: list[tuple[bytes, int, int, int]] = []  # name, checksum, size, offset of the header
        self._digest = hashlib.blake2b(digest_size=16)
        self._ended = False

    def archive_name(self) -> str:
        """The folder that all records are in."""
        return self._folder

    def get_all_written_records(self) -> set[str]:
        """The names of the records so far, without the folder."""
        return {name.decode()[len(self._folder) + 1 :] for name, *_ in self._entries}

    def serialization_id(self) -> str:
        """Forty digits that tell this archive's contents from others'."""
        return str(int.from_bytes(self._digest.digest(), "little")).rjust(40, "0")

    def write_record(self, name: str, data: Any, size: int | None = None) -> None:
        """Add a record: text, bytes, or something with the buffer protocol; `size` bytes of it."""
        if isinstance(data, str):
            data = data.encode()
        view = memoryview(data).cast("B")
        if size is not None and size != view.nbytes:
            view = view[:size]
        checksum = zlib.crc32(view) if self._compute_crc32 and view.nbytes else 0
        self._begin(name, checksum, view.nbytes)
        if view.nbytes:
            self._put(view)

    def write_record_metadata(self, name: str, size: int) -> None:
        """Add a record of zeros, whose bytes may be written later at its offset."""
        self._begin(name, 0, size)
        for start in range(0, size, len(_PIECE)):
            self._put(_PIECE[: size - start])

    def _begin(self, name: str, checksum: int, size: int) -> None:
        path = f"{self._folder}/{name}".encode()
        large = struct.pack("<HHQQ", 1, 16, size, size) if size >= _LIMIT else b""
        start = self._at + 30 + len(path) + len(large)
        padding = -(start + 4) % self._alignment
        extra = large + b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
        self._entries.append((path, checksum, size, self._at))
        self._digest.update(struct.pack("<IQ", checksum, size) + path)
        flags = _FLAGS_STORED if path.isascii() else _UTF8_NAMES
        held = min(size, _LIMIT)
        version = 45 if large else 20
        header = struct.pack(
            "<4sHHHHHIIIHH", b"PK\3\4", version, flags, 0, 0, _NEW_YEAR_1980, checksum, held, held, len(path), len(extra)
        )
        self._put(header + path + extra)

    def _put(self, piece: Any) -> None:
        self._at += len(piece) if isinstance(piece, bytes) else piece.nbytes
        self._write(piece)

    def write_end_of_file(self) -> None:
        """Add the records that every archive ends with and the directory; nothing can be added after."""
        if self._ended:
            return
        self._ended = True
        identity = self.serialization_id().encode()
        self.write_record("version", b"3\n")
        self.write_record(".data/serialization_id", identity)
        start = self._at
        for path, checksum, size, offset in self._entries:
            fields = b""
            if size >= _LIMIT:
                fields += struct.pack("<QQ", size, size)
            if offset >= _LIMIT:
                fields += struct.pack("<Q", offset)
            extra = struct.pack("<HH", 1, len(fields)) + fields if fields else b""
            version, held = (45 if fields else 20), min(size, _LIMIT)
            flags = _FLAGS_STORED if path.isascii() else _UTF8_NAMES
            self._put(
                struct.pack(
                    "<4sHHHHHHIIIHHHHHII",
                    b"PK\1\2",
                    version,
                    version,
                    flags,
                    0,
                    0,
                    _NEW_YEAR_1980,
                    checksum,
                    held,
                    held,
                    len(path),
                    len(extra),
                    0,
                    0,
                    0,
                    0,
                    min(offset, _LIMIT),
                )
                + path
                + extra
            )
        self._end_directory(start)

    def _end_directory(self, start: int) -> None:
        size, count = self._at - start, len(self._entries)
        if count >= 0xFFFF or start >= _LIMIT or size >= _LIMIT:
            here = self._at
            self._put(struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start))
            self._put(struct.pack("<4sIQI", b"PK\6\7", 0, here, 1))
        few = min(count, 0xFFFF)
        self._put(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, few, few, min(size, _LIMIT), min(start, _LIMIT), 0))


class ArchiveReader:
    """The records of a zip file, unpacked to no more than a checkpoint could hold. RuntimeError: it is damaged.

    Names are those inside the archive's folder. As in torch, checksums are not compared.
    """

    def __init__(self, file: Any) -> None:
        self._file: BinaryIO = file if hasattr(file, "seekable") else in_memory(file)
        self.size = self._file.seek(0, os.SEEK_END)
        # torch compresses nothing; in an archive that was compressed afterwards the entries are weights, which hardly shrink.
        self._left = max(_FREE_BYTES, _MOST_RATIO * self.size)
        try:
            self._zip = zipfile.ZipFile(self._file)
        except _DAMAGED_ZIP:
            raise RuntimeError("PytorchStreamReader failed reading zip archive: failed finding central directory") from None
        names = self._zip.namelist()
        first = next((name for name in names if name.endswith("/data.pkl")), names[0] if names else "")
        self._folder = first[: -len("data.pkl")] if first.endswith("/data.pkl") else first.partition("/")[0] + "/"
        self._names = frozenset(names)

    def get_all_records(self) -> list[str]:
        """The names of all records, in their order in the archive."""
        at = len(self._folder)
        return [name[at:] for name in self._zip.namelist() if name.startswith(self._folder)]

    def has_record(self, name: str) -> bool:
        """Whether there is a record of that name."""
        return self._folder + name in self._names

    def info(self, name: str) -> zipfile.ZipInfo:
        """The directory's entry of a record; RuntimeError if there is none that could be read."""
        try:
            info = self._zip.getinfo(self._folder + name)
        except KeyError:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found") from None
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # Python unpacks others without bounds
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: compression not supported")
        if not 0 <= info.header_offset < self.size:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: it is outside the file")
        return info

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return self.info(name).file_size

    def get_record_header_offset(self, name: str) -> int:
        """Where a record's header is in the file."""
        return self.info(name).header_offset

    def get_record_offset(self, name: str) -> int:
        """Where a record's bytes are in the file."""
        info = self.info(name)
        self._file.seek(info.header_offset + 26)
        lengths = self._file.read(4)
        if len(lengths) < 4:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it breaks off")
        name_length, extra_length = struct.unpack("<HH", lengths)
        return int(info.header_offset + 30 + name_length + extra_length)

    def get_record(self, name: str) -> bytes:
        """A record's bytes."""
        return self.array(name).tobytes()

    def serialization_id(self) -> str:
        """What the writer noted to tell archives apart; empty if nothing."""
        name = ".data/serialization_id"
        return self.get_record(name).decode("ascii", "replace") if self.has_record(name) else ""

    def array(self, name: str) -> np.ndarray:
        """A record's bytes in memory of their own."""
        info = self.info(name)
        self._left -= info.file_size
        if self._left < 0:
            raise RuntimeError(f"the checkpoint unpacks to more than {_MOST_RATIO} times its size")
        if info.compress_type != zipfile.ZIP_STORED:
            return self._unpacked(name, info)
        start = self.get_record_offset(name)
        if start + info.file_size > self.size:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it breaks off")
        self._file.seek(start)
        data = np.empty(info.file_size, np.uint8)
        fill(self._file, data, name)
        return data

    def _unpacked(self, name: str, info: zipfile.ZipInfo) -> np.ndarray:
        try:
            data = self._zip.read(info)
        except _DAMAGED_ZIP as error:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {error}") from None
        if len(data) != info.file_size:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it breaks off")
        return np.frombuffer(bytearray(data), np.uint8)

    def __enter__(self) -> ArchiveReader:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()


def fill(file: Any, data: np.ndarray, name: str) -> None:
    """Read as many bytes as an array has into it; RuntimeError if the file ends before."""
    view, done = memoryview(data), 0  # type: ignore[arg-type]
    into = getattr(file, "readinto", None)
    while done < data.nbytes:
        if into is not None:
            count = into(view[done:])
        else:
            piece = file.read(data.nbytes - done)
            count = len(piece)
            view[done : done + count] = piece
        if not count:
            raise RuntimeError(f"file {name} has {done} bytes, expected {data.nbytes}: corrupt file?")
        done += count


def in_memory(file: Any) -> io.BytesIO:
    """What is in a file from its present position on, for objects that lack the methods of Python's files."""
    start = file.tell()
    file.seek(0, os.SEEK_END)
    size = file.tell() - start
    file.seek(start)
    data = np.empty(size, np.uint8)
    fill(file, data, "archive")
    return io.BytesIO(data.tobytes())
