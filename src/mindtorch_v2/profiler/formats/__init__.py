"""Files of recordings. In: a path or a store; out: a store with an account of what could not be read, or a file.

`detect` opens any file: `kineto` reads traces, `saved` reads and writes this project's format, `rebuild` completes streamed
files. `validate` checks recordings. `speedscope`, `perfetto`, `pprof`, `csv_file` and `parquet_file` write for other tools;
results/writers.py has the table of all writers.
"""

from __future__ import annotations

from ._recovery import Recovery, TraceError

__all__ = ["Recovery", "TraceError"]
