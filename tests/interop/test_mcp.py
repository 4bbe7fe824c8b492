"""`mtprof mcp` asked by the client of the protocol's own SDK, over standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.cli import command
from mindtorch_v2.profiler.cli.commands.live.mcp import make_server

mcp = pytest.importorskip("mcp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the trace of a small run."""
    path = tmp_path_factory.mktemp("runs")
    with profile(record_shapes=True, with_stack=True) as prof:
        for _ in range(20):
            torch.nn.functional.linear(torch.ones(3, 4), torch.ones(2, 4)).relu().sum()
    prof.export_chrome_trace(str(path / "mlp.json"))
    return path


async def ask(folder, *calls):
    """The tools, and the text and error flag of each call."""
    parameters = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "mindtorch_v2.profiler", "mcp", "--folder", str(folder)]
    )
    answers = []
    async with mcp.Client(parameters) as client:
        tools = (await client.list_tools()).tools
        for name, arguments in calls:
            result = await client.call_tool(name, arguments)
            answers.append((result.content[0].text, bool(result.is_error)))
    return tools, answers


def test_a_client_asks(folder):
    tools, answers = asyncio.run(
        ask(
            folder,
            ("table", {"path": "mlp.json", "limit": 3}),
            ("events", {"path": "mlp.json", "limit": -1}),
            ("more", {"answer": "a1", "part": 2}),
            ("table", {"path": "../other.json"}),
        )
    )
    assert {"table", "events", "advice", "diff", "more"} <= {tool.name for tool in tools}
    (table, _), (first, _), (second, _), (refused, is_error) = answers
    assert len(json.loads(table)["rows"]) == 3
    assert json.loads(first)["part"] == 1 and json.loads(second)["part"] == 2
    assert is_error and "outside of the folder" in refused


def test_the_server_tells_its_version(tmp_path):
    options = make_server(str(tmp_path)).create_initialization_options()
    assert (options.server_name, options.server_version) == ("mtprof", command.version("mindtorch_v2"))
