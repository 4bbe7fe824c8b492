"""Colors that stand beside each other are told apart with every kind of color blindness, and text on them can be read."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2.profiler.report as report

TEXT = (Path(report.__file__).parent / "assets/widgets/palette.js").read_text()
PLAIN = (Path(report.__file__).parent / "plain_page.py").read_text()
# How colors in linear light look to those without one kind of cone: Machado, Oliveira and Fernandes, 2009.
SEEN = {
    "all": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
WHITE = np.array([0.95047, 1.0, 1.08883])
LEAST = 10
INKS = ("#14161a", "#ffffff")


def linear(color):
    parts = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(color, kind):
    xyz = TO_XYZ @ np.clip(np.asarray(SEEN[kind]) @ linear(color), 0, 1) / WHITE
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def delta_e(a, b, kind):
    return float(np.linalg.norm(lab(a, kind) - lab(b, kind)))


def contrast(a, b):
    low, high = sorted(float(TO_XYZ[1] @ linear(color)) for color in (a, b))
    return (high + 0.05) / (low + 0.05)


def palette(name, theme):
    block = re.search(rf"const {name} = [\[{{].*?\n[\]}}];", TEXT, re.DOTALL)[0]
    return [pair[theme] for pair in re.findall(r'"(#[0-9a-f]{6})", "(#[0-9a-f]{6})"', block)]


def shades():
    """Of the flame graph of a comparison, from faster to slower."""
    return [re.search(rf"\.flame \.d{shade} {{ fill: (#\w+)", PLAIN)[1] for shade in range(-3, 4)]


def least(kind, theme):
    """The smallest distance of families, phases with categories, and shades that may touch.

    Families and shades stand in the order of their list; of phases and of categories any two may lie on each other in a chart.
    """
    families, phases, categories = (palette(name, theme) for name in ("FAMILIES", "PHASES", "CATEGORY_COLOURS"))
    assert (len(families), len(phases), len(categories)) == (13, 8, 8)
    both = (*itertools.combinations(phases, 2), *itertools.combinations(categories, 2))
    return [
        min(delta_e(a, b, kind) for a, b in pairs)
        for pairs in (itertools.pairwise(families), both, itertools.pairwise(shades()))
    ]


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("kind", SEEN)
def test_neighbors_are_told_apart(kind, theme):
    assert min(least(kind, theme)) >= LEAST


def test_the_figures_in_the_docs_are_these():
    page = (Path(__file__).parents[4] / "docs/commands/report.md").read_text()
    for kind in SEEN:
        figures = [*least(kind, 0)[:2], *least(kind, 1)[:2], least(kind, 0)[2]]
        assert f"| {kind} | {' | '.join(f'{figure:.1f}' for figure in figures)} |" in page


@pytest.mark.parametrize("theme", [0, 1])
def test_text_on_every_color_can_be_read(theme):
    colors = [color for name in ("FAMILIES", "PHASES", "CATEGORY_COLOURS") for color in palette(name, theme)]
    assert min(max(contrast(color, ink) for ink in INKS) for color in colors) >= 4.5
    assert min(contrast(shade, INKS[0]) for shade in shades()) >= 4.5


def test_the_measure_itself():
    assert delta_e("#000000", "#ffffff", "all") == pytest.approx(100, abs=0.1)
    assert delta_e("#ff0000", "#00ff00", "deutan") < delta_e("#ff0000", "#00ff00", "all") / 2
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
