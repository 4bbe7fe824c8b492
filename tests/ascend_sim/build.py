"""Builds the simulator of CANN's C ABI with the machine's C compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARIES = {
    "libascendcl.so": ("runtime.c", "memory.c", "streams.c", "events.c", "watch.c"),
    "libnnopbase.so": ("meta.c",),
    "libopapi.so": ("ops*.c",),
    "libhccl.so": ("hccl.c",),
    "libms_tools_ext.so": ("mstx.c",),
    "libmspti.so": ("mspti.c",),
}
"""Each library of CANN and its sources; a library may use those above it."""

_FLAGS = ("-std=c11", "-O1", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-pthread")


def compiler() -> str | None:
    """The C compiler to use: $CC, or the first of the usual names that is there."""
    wanted = os.environ.get("CC")
    return next((found for name in ([wanted] if wanted else ["cc", "gcc", "clang"]) if (found := shutil.which(name))), None)


def build(root: Path, without: str | None = None) -> Path:
    """The folder with the libraries, built below `root` unless the same sources were built there before.

    `without` names a function of the ABI that the libraries shall lack.
    """
    command = compiler()
    if command is None:
        raise RuntimeError("no C compiler: the simulator cannot be built")
    headers = _digest(command, repr(_FLAGS), *(path.read_text() for path in sorted(HERE.glob("*.h"))))
    sources = {path: _digest(headers, path.read_text()) for path in sorted(HERE.glob("*.c"))}
    folder = root / _digest(Path(__file__).read_text(), repr(without), *sources.values())
    if folder.exists():
        return folder
    root.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        objects = dict(zip(sources, workers.map(lambda item: _compile(command, root, *item), sources.items()), strict=True))
    made = Path(tempfile.mkdtemp(dir=root))
    exports = made / "exports"  # a function that the linker makes local is not there for others
    exports.write_text(f"{{ local: {without}; }};" if without else "{ local: nothing; };")
    above: list[str] = []
    for name, patterns in LIBRARIES.items():
        parts = [str(objects[path]) for pattern in patterns for path in sorted(HERE.glob(pattern))]
        subprocess.run(
            [
                command,
                "-shared",
                "-pthread",
                "-o",
                str(made / name),
                *parts,
                *above,
                f"-Wl,-soname,{name}",
                "-Wl,-rpath,$ORIGIN",
                f"-Wl,--version-script={exports}",
                "-lm",
            ],
            check=True,
        )
        above.append(str(made / name))
    return _put(made, folder)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _compile(command: str, root: Path, source: Path, digest: str) -> Path:
    made = root / f"{source.stem}-{digest}.o"
    if not made.exists():
        with tempfile.TemporaryDirectory(dir=root) as room:
            subprocess.run([command, *_FLAGS, "-c", "-o", f"{room}/made.o", str(source)], check=True)
            Path(room, "made.o").rename(made)
    return made


def _put(made: Path, folder: Path) -> Path:
    try:
        made.rename(folder)
    except OSError:  # another process was faster; its libraries are the same
        shutil.rmtree(made)
    return folder


if __name__ == "__main__":
    print(build(HERE.parents[1] / "build" / "ascend_sim"))
