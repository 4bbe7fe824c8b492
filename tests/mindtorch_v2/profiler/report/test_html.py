"""The file: nothing in it comes from outside, and no name in a recording becomes markup."""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
import tomllib
from pathlib import Path

import pytest

from mindtorch_v2.profiler.report import html
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.store.store import EventStore

HOSTILE = "</script><img src=x onerror=alert(1)>&\u2028{{script}}"
ASSETS = Path(html.__file__).parent / "assets"


@pytest.fixture
def page(tmp_path):
    store = EventStore.from_rows(
        [{"name": HOSTILE, "start": 0, "end": 10, "module": HOSTILE, "stack": (HOSTILE,)}],
        metadata={HOSTILE: HOSTILE},
        options={"use_device": HOSTILE},
    )
    path = tmp_path / "page.html"
    finding = {"rule": HOSTILE, "title": HOSTILE, "detail": HOSTILE, "evidence": (HOSTILE,), "where": HOSTILE}
    writers.get("html")(store, path, title=HOSTILE, findings=[finding])
    return path.read_text(encoding="utf-8")


def test_no_text_of_the_recording_is_markup(page):
    assert "<img" not in page and "onerror=alert(1)>" not in page
    assert page.count("{{script}}") == page.count("{{")  # of the title, as text; no field of ours is left
    assert len(re.findall("<script", page)) == len(re.findall("</script>", page))


def test_the_policy_allows_this_script_and_this_style_and_nothing_else(page):
    def allowed(tag: str) -> str:
        text = re.search(rf"<{tag}>(.*?)</{tag.split()[0]}>", page, re.DOTALL)[1]
        return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    script, style = allowed('script type="module"'), allowed("style")
    assert policy == (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_assets_ask_for_nothing_and_make_no_markup_from_text():
    for path in filter(Path.is_file, ASSETS.rglob("*")):
        match = re.search(
            r"https?://|url\(|@import|(?:inner|outer|Adjacent)HTML|document\.write|\beval\(", path.read_text(encoding="utf-8")
        )
        assert not match, path


def test_a_script_uses_only_what_stands_before_it():
    assert sorted(html.SCRIPTS) == sorted(path.relative_to(ASSETS).as_posix() for path in ASSETS.rglob("*.js"))
    defined: dict[str, str] = {}
    for name in html.SCRIPTS:
        text = (ASSETS / name).read_text(encoding="utf-8")
        for names, source in re.findall(r'^import \{([^}]*)\} from "(\.\.?/[\w./]+)";$', text, re.MULTILINE):
            for symbol in filter(str.strip, names.split(",")):
                assert defined.get(symbol.strip()) == posixpath.normpath(posixpath.join(posixpath.dirname(name), source)), (
                    f"{name} takes {symbol.strip()} from {source}"
                )
                assert len(re.findall(rf"\b{symbol.strip()}\b", text)) > 1, f"{name} does not use {symbol.strip()}"
        for symbol in re.findall(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", text, re.MULTILINE):
            assert symbol not in defined, f"{name} and {defined.get(symbol)} both define {symbol}"
            defined[symbol] = name
    joined = html.joined_script()
    assert not re.search(r"^(import|export) ", joined, re.MULTILINE) and "</script" not in joined


def test_assets_are_installed_with_the_package():
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text(encoding="utf-8"))
    assert "profiler/report/assets/**/*" in project["tool"]["setuptools"]["package-data"]["mindtorch_v2"]


def test_a_failure_leaves_the_earlier_file(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("earlier")
    with pytest.raises(AttributeError):
        html.export(EventStore.from_rows([]), path, memory="no memory profile", overhead=object())
    assert path.read_text(encoding="utf-8") == "earlier" and [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_the_title_is_profile_if_not_given(tmp_path):
    html.export(EventStore.from_rows([]), tmp_path / "page.html")
    assert "<title>Profile</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_small_recording_makes_a_small_file(report):
    assert report.stat().st_size < 250_000
