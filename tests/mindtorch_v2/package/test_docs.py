"""The pages: usage texts, the table of parity, links and code on them are those of the checkout."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # NamedTuple looks its module up
    spec.loader.exec_module(module)
    return module


command_pages = tool("command_pages")
parity_table = tool("parity_table")


def anchor(heading):
    """How GitHub names a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(page):
    return {anchor(line.lstrip("# ")) for line in FENCE.sub("", page.read_text()).splitlines() if line.startswith("#")}


def links(page):
    """Links and pictures of a page that lead to other files, with their anchors."""
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text()))
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", target)]


def page_id(page):
    return str(page.relative_to(ROOT))


def test_every_command_has_a_page_with_its_usage():
    assert set(command_pages.COMMANDS) == set(command_pages.TEXTS)
    assert not command_pages.stale(), "run `make docs`"


def test_usage_is_compared_by_its_words():
    old = "options:\n  -o FILE, --output FILE\n                        a file of self-\n                        made things\n"
    new = "options:\n  -o, --output FILE     a file of self-made things\n"
    assert command_pages.words(old) == command_pages.words(new)
    assert command_pages.words(old) != command_pages.words(new.replace("--output", "--out"))
    assert command_pages.words(old) != command_pages.words(new.replace("things", "stuff"))


def test_table_of_parity_is_what_the_recorded_cases_and_the_lists_say():
    _, block, _ = parity_table.parts(parity_table.PAGE.read_text())
    assert block == parity_table.block(), "run `make docs`"


def test_pages_that_name_the_number_of_cases_name_the_right_one():
    total = f"{len(parity_table.names()):,}"
    for page in PAGES:
        assert set(re.findall(r"([\d,]+) (?:recorded )?cases", page.read_text())) <= {total}, page_id(page)


def test_counts_of_parity():
    names = ["runtime_a::x", "runtime_b::y", "profiler_a::z", "smoke::s"]
    counts = parity_table.counts(names, departures={"runtime_a::x"}, gaps={"profiler_a::z"})
    assert counts["runtime"] == (2, 1, 0) and counts["runtime"].agree == 1
    assert counts["profiler"] == (1, 0, 1) and counts["profiler"].agree == 0
    with pytest.raises(AssertionError, match="belongs to no group"):
        parity_table.counts(["other_a::x"], set(), set())


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page):
    for target in links(page):
        path, _, section = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page_id(page)}: {target}"
        assert not section or section in anchors(there), f"{page_id(page)}: {target}"


def test_the_example_of_an_op_is_the_source():
    text = (ROOT / "docs" / "add-an-op.md").read_text()
    (patch,) = [code for language, code in FENCE.findall(text) if language == "diff"]
    lines = patch.splitlines()
    file = next(line.removeprefix("+++ b/") for line in lines if line.startswith("+++ "))
    start, count = map(int, re.search(r"^@@ -\d+,\d+ \+(\d+),(\d+) @@", patch, re.MULTILINE).groups())
    shown = [line[1:] for line in lines if line[:1] in ("+", " ") and not line.startswith("+++")]
    source = (ROOT / file).read_text().splitlines()
    assert len(shown) == count
    assert any(source[at : at + count] == shown for at in range(start - 9, start + 9)), "the source has changed"


@pytest.mark.parametrize("name", ["architecture.md", "how-it-works.md", "glossary.md", "npu.md", "add-an-op.md", "interop.md"])
def test_source_files_named_on_the_page_exist(name):
    known = {path.relative_to(ROOT).as_posix() for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.*")}
    text = FENCE.sub("", (ROOT / "docs" / name).read_text())
    named = re.findall(r"`([\w/]+\.(?:py|mjs))`", text)
    assert not [file for file in named if not any(f"/{path}".endswith(f"/{file}") for path in known)]


def test_every_page_can_be_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.exists():
            reached.add(page)
            waiting += [(page.parent / target.partition("#")[0]).resolve() for target in links(page)]
    assert not {page_id(page) for page in PAGES} - {page_id(page) for page in reached}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_python_on_the_page_compiles(page):
    for language, code in FENCE.findall(page.read_text()):
        if language == "python" and ">>>" not in code:
            compile(code, page_id(page), "exec")


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_no_page_names_a_place_of_one_machine(page):
    assert not re.findall(r"(?<![\w.~])/(?:work|tmp|opt|root|home|mnt)\b\S*", page.read_text())


def test_how_it_works_runs():
    text = (ROOT / "docs" / "how-it-works.md").read_text()
    program = "\n".join(code for language, code in FENCE.findall(text) if language == "python")
    assert len([line for line in program.splitlines() if line.strip()]) <= 160
    exec(compile(program, "how-it-works.md", "exec"), {"__name__": "page"})


def test_the_slow_and_the_changed_program_print_the_same(capsys):
    text = (ROOT / "docs" / "slow-step.md").read_text()
    slow, _, changed = (code for language, code in FENCE.findall(text) if language == "python")
    printed = []
    for program in (slow, changed):
        exec(compile(program, "train.py", "exec"), {"__name__": "page"})
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert printed[0].count("of 640 right") == 3


def test_every_word_of_the_glossary_has_its_place():
    """`Name` in `file.py` is defined there."""
    text = (ROOT / "docs" / "glossary.md").read_text()
    for name, place in re.findall(r"`([\w.]+)` in `([\w/]+(?:\.py|/))`", text):
        path = ROOT / "src" / "mindtorch_v2" / place
        sources = [path] if path.suffix else sorted(path.rglob("*.py"))
        assert any(re.search(rf"^(?:class|def) {name}\b", source.read_text(), re.MULTILINE) for source in sources), name
    for folder in re.findall(r"`([\w/]+/)`", text):
        assert (ROOT / "src" / "mindtorch_v2" / folder).is_dir(), folder


def test_reference_is_made_from_the_declarations():
    """In a process of its own: optimizers that were used have other functions than fresh ones."""
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "reference.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_reference_shows_signatures_as_they_are_written():
    pages = ROOT / "docs" / "reference"
    assert "with_stack: bool | Literal['sampled'] = False" in (pages / "profiler.md").read_text()
    assert "torch.nn.GELU(approximate: str = 'none') -> None" in (pages / "modules.md").read_text()
