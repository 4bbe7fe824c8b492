"""Make an environment with the libraries of libraries.txt and what they require, but without torch.

    python tests/ecosystem/install.py build/ecosystem/venv

pip would install torch wherever a library requires it, so nothing is installed with its requirements: they are read from the
metadata of what has been installed, and installed in their turn, until none is missing. `--torch` puts the packages of another
environment, one that has torch, beside them: for recording figures.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"

# mindtorch_v2 stands in for torch; these are built against torch's own binaries.
NEVER = {"torch", "torchvision", "torchaudio", "torchcodec", "triton"}

# Run inside of the environment: the requirements that nothing installed there meets, one a line.
MISSING = """
import importlib.metadata as metadata
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name
installed = {canonicalize_name(d.metadata["Name"]): d for d in metadata.distributions()}
wanted = {}
for distribution in installed.values():
    for line in distribution.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            name = canonicalize_name(requirement.name)
            wanted.setdefault(name, requirement.specifier)
            wanted[name] &= requirement.specifier
for name, specifier in sorted(wanted.items()):
    if name not in NEVER and not (name in installed and specifier.contains(installed[name].version, prereleases=True)):
        print(f"{name}{specifier}")
"""


def library_names() -> list[str]:
    """The lines of libraries.txt that are not comments."""
    lines = (line.split("#")[0].strip() for line in (HERE / "libraries.txt").read_text().splitlines())
    return [line for line in lines if line]


def pip_install(python: Path, packages: Iterable[str]) -> None:
    """Install packages without what they require."""
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *packages], check=True
    )


def missing_requirements(python: Path) -> list[str]:
    """What installed packages require, torch aside, and is not installed."""
    answer = subprocess.run([python, "-c", f"NEVER = {NEVER!r}\n{MISSING}"], check=True, capture_output=True, text=True)
    return answer.stdout.split("\n")[:-1]


def site_packages(python: Path | str) -> Path:
    """Where an interpreter's packages are."""
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--torch", metavar="PYTHON", help="an interpreter that has torch: its packages, instead of mindtorch_v2"
    )
    arguments = parser.parse_args()
    python = arguments.folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", arguments.folder], check=True)
    pip_install(python, ["--upgrade", "pip"])
    other = site_packages(arguments.torch) if arguments.torch else SOURCES
    (site_packages(python) / "ecosystem.pth").write_text(f"{other}\n")
    pip_install(python, ["--upgrade", "numpy", "ml_dtypes", "orjson", *library_names()])
    seen: list[str] = []
    while (missing := missing_requirements(python)) and missing != seen:
        pip_install(python, missing)
        seen = missing
    if missing:
        sys.exit(f"could not be installed: {', '.join(missing)}")


if __name__ == "__main__":
    main()
