"""%%profile in a notebook that nbconvert executes: what the cells show, and that none of the notebook's frames are recorded."""

from __future__ import annotations

import json
import re

import pytest

nbformat = pytest.importorskip("nbformat")
preprocessors = pytest.importorskip("nbconvert.preprocessors")
exporters = pytest.importorskip("nbconvert.exporters")
pytest.importorskip("ipykernel")

CELLS = (
    "%load_ext mindtorch_v2.profiler\nimport json\nimport mindtorch_v2 as torch\n"
    "def step(x):\n    return torch.nn.functional.linear(x, torch.ones(2, 3)).relu().sum()",
    "%%profile --stack --memory prof\nfor _ in range(5):\n    step(torch.ones(4, 3))",
    "%%profile --flame\nstep(torch.ones(4, 3))",
    "%%profile --report\nstep(torch.ones(4, 3))",
    "prof.events()",
    "prof",
    "print(json.dumps([[event.name, event.stack] for event in prof.events()]))",
    "%%profile --nonsense\nran = True",
    "%%profile stopped\ntorch.ones(3) + 1\nstep(1)",
    "stopped.key_averages()",
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The outputs of every cell."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    folder = tmp_path_factory.mktemp("notebook")
    executor = preprocessors.ExecutePreprocessor(timeout=120, kernel_name="python3", allow_errors=True)
    executor.preprocess(book, {"metadata": {"path": str(folder)}})
    html, _ = exporters.HTMLExporter().from_notebook_node(book)
    assert "aten::linear" in html and "<iframe" in html
    return [cell.outputs for cell in book.cells]


def html_of(cell):
    return "\n".join(output.data.get("text/html", "") for output in cell if "data" in output)


def test_what_cells_show(outputs):
    assert "aten::linear" in html_of(outputs[1]) and "<table" in html_of(outputs[1])
    assert "first use of ops" in html_of(outputs[1]) and html_of(outputs[1]).count("import mindtorch_v2") <= 1
    assert "<table" in html_of(outputs[2]) and "<svg" in html_of(outputs[2])
    assert '<iframe title="Profile" sandbox="allow-scripts"' in html_of(outputs[3])
    assert "events in order of start" in html_of(outputs[4])
    assert "<table" in html_of(outputs[5])


def test_texts_beside_the_html_are_short(outputs):
    for cell in outputs[1:6]:
        for output in cell:
            assert len(output.get("data", {}).get("text/plain", "")) < 10_000


def test_no_frame_of_the_notebook_is_recorded(outputs):
    events = json.loads("".join(output.text for output in outputs[6] if output.output_type == "stream"))
    assert any(name == "aten::linear" for name, _ in events)
    for text in (text for name, stack in events for text in (name, *stack)):
        assert not any(word in text for word in ("ipykernel/kernelbase", "IPython", "asyncio", "tornado", "profiler/notebook"))


def test_a_wrong_line_is_told(outputs):
    """In IPython's short form: what it writes, no traceback."""
    [output] = outputs[7]
    assert output.output_type == "stream" and output.name == "stderr"
    assert output.text.startswith("UsageError: %%profile: unrecognized arguments: --nonsense\nusage: %%profile [--stack]")


def test_a_cell_that_raises_shows_what_it_did(outputs):
    assert "aten::add" in html_of(outputs[8]) and "aten::add" in html_of(outputs[9])


def test_a_traceback_has_the_number_of_the_cell(outputs):
    [error] = [output for output in outputs[8] if output.output_type == "error"]
    shown = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error.traceback))
    assert set(re.findall(r"Cell In\[(\d+)\]", shown)) == {"1", "9"}
