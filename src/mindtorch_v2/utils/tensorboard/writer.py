"""SummaryWriter: writes what a training run reports to an event file."""

from __future__ import annotations

import os
import socket
import threading
import time
from datetime import datetime
from typing import Any, NoReturn

import numpy as np

from ..._core.files import name_in_folder, path_in_folder
from . import summary
from ._records import double, integer, message, record

_written = 0


class FileWriter:
    """Appends events to one file, in the format that TensorBoard reads."""

    def __init__(self, log_dir: str, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        global _written  # noqa: PLW0603  numbers the files of the process
        self._log_dir = str(log_dir)
        if filename_suffix:
            name_in_folder(filename_suffix, "filename_suffix")
        os.makedirs(self._log_dir, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{_written}"
        _written += 1
        self._path = os.path.join(self._log_dir, name + filename_suffix)
        self._file = open(self._path, "wb")  # noqa: SIM115  it stays open until close()
        self._flush_secs = flush_secs
        self._flushed = time.monotonic()
        self._lock = threading.Lock()
        self._write(double(1, time.time()) + message(3, "brain.Event:2"))
        self.flush()

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self._log_dir

    def _write(self, event: bytes) -> None:
        with self._lock:
            if self._file.closed:
                raise ValueError("the event file has been closed")
            self._file.write(record(event))
            if time.monotonic() - self._flushed > self._flush_secs:
                self._file.flush()
                self._flushed = time.monotonic()

    def add_summary(self, value: bytes, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write one encoded Summary value as an event."""
        event = double(1, time.time() if walltime is None else walltime)
        if global_step is not None:
            event += integer(2, int(global_step))
        self._write(event + message(5, message(1, value)))

    def flush(self) -> None:
        """Hand what was written so far to the operating system."""
        with self._lock:
            if not self._file.closed:
                self._file.flush()

    def close(self) -> None:
        """Write what is left and close the file."""
        with self._lock:
            self._file.close()


class SummaryWriter:
    """`writer.add_scalar("loss", loss, step)`: values by name and step, in a folder that TensorBoard is pointed at."""

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if purge_step is not None:
            raise NotImplementedError("SummaryWriter(purge_step=...)")
        if not log_dir:
            moment = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = path_in_folder("runs", f"{moment}_{socket.gethostname()}{comment}", "comment")
        self.log_dir = str(log_dir)
        self.flush_secs, self.max_queue, self.filename_suffix = flush_secs, max_queue, filename_suffix
        self.file_writer: FileWriter | None = self._open(self.log_dir)
        self.all_writers: dict[str, FileWriter] = {self.log_dir: self.file_writer}

    def _open(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = self.all_writers[self.log_dir] = self._open(self.log_dir)
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Write one number under `tag`."""
        if new_style or double_precision:
            raise NotImplementedError("add_scalar(new_style=True) and (double_precision=True)")
        self._writer().add_summary(summary.scalar(tag, scalar_value), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Several numbers in one chart, each in a run of its own."""
        for name, value in tag_scalar_dict.items():
            folder = path_in_folder(self.log_dir, f"{main_tag.replace('/', '_')}_{name}", "a tag of add_scalars()")
            writer = self.all_writers.get(folder)
            if writer is None:
                writer = self.all_writers[folder] = self._open(folder)
            writer.add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Write the distribution of `values` under `tag`."""
        self._writer().add_summary(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write text, which TensorBoard shows as Markdown."""
        self._writer().add_summary(summary.text(tag, text_string), global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None, dataformats: str = "CHW"
    ) -> None:
        """An image: bytes from 0 to 255, or floats from 0 to 1."""
        self._writer().add_summary(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """A batch of images, as a grid."""
        self._writer().add_summary(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A Matplotlib figure, or a list of them."""
        for each in figure if isinstance(figure, list) else [figure]:
            each.canvas.draw()
            pixels = np.asarray(each.canvas.buffer_rgba())[..., :3]
            self.add_image(tag, pixels, global_step, walltime, dataformats="HWC")
            if close:
                each.clear()

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: Any = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> NoReturn:
        """Not supported: raises NotImplementedError."""
        raise NotImplementedError("SummaryWriter.add_hparams")

    def add_graph(self, model: Any, *args: Any, **kwargs: Any) -> NoReturn:
        """A model's graph: not supported."""
        raise NotImplementedError("SummaryWriter.add_graph: models are not traced")

    def add_embedding(self, mat: Any, *args: Any, **kwargs: Any) -> NoReturn:
        """Points in space: not supported."""
        raise NotImplementedError("SummaryWriter.add_embedding")

    def add_video(self, tag: str, *args: Any, **kwargs: Any) -> NoReturn:
        """Not supported: raises NotImplementedError."""
        raise NotImplementedError("SummaryWriter.add_video")

    def add_audio(self, tag: str, *args: Any, **kwargs: Any) -> NoReturn:
        """Not supported: raises NotImplementedError."""
        raise NotImplementedError("SummaryWriter.add_audio")

    def add_pr_curve(self, tag: str, *args: Any, **kwargs: Any) -> NoReturn:
        """A precision-recall curve: not supported."""
        raise NotImplementedError("SummaryWriter.add_pr_curve")

    def flush(self) -> None:
        """Make sure that everything is in the files."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Write everything and close the files; a later value opens a new one."""
        for writer in self.all_writers.values():
            writer.close()
        self.all_writers, self.file_writer = {}, None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
