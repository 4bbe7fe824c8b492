"""Mends whitespace in text files: none at the ends of lines, one newline at the end of a file.

Run with the names of the files; exits with 1 where it changed any, as a commit hook does.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def mended(text: str) -> str:
    """The text without trailing whitespace, ending in one newline; an empty text stays empty."""
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).rstrip("\n")
    return text + "\n" if text else ""


def main(names: list[str]) -> int:
    """Mend the files; 1 if one of them has changed."""
    changed = False
    for path in map(Path, names):
        before = path.read_bytes().decode()
        after = mended(before)
        if after != before:
            path.write_bytes(after.encode())
            print(f"{path}: whitespace mended")
            changed = True
    return int(changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
