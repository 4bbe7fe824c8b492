"""Serve the reading commands over the Model Context Protocol.

A program that speaks it (an editor, an assistant) starts this command and asks on standard input.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from ....views.tabular import import_extra
from ... import command
from ...exit_codes import FINE, USAGE, Failure
from ...questions import MOST_CHARACTERS, Answers, WrongQuestionError

EXAMPLE = "mtprof mcp --folder runs"

_MORE = "more"
_MORE_SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "description": "the id of an answer that was cut"},
        "part": {"type": "integer", "description": "which part of it, from 1"},
    },
    "required": ["answer", "part"],
    "additionalProperties": False,
}
_INSTRUCTIONS = (
    "Questions about recordings of mindtorch_v2's profiler and of PyTorch's (.mtp, .json, .json.gz). Begin with table and "
    "advice; events and tree go into detail; diff and history compare. limit bounds how much is listed, and keys that end in "
    f"_in_all tell how much there is. An answer of more than {MOST_CHARACTERS:,} characters comes in parts: ask more for the "
    "others. Times end in _ns (nanoseconds) or are torch's attributes (microseconds)."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("--folder", default=".", help="only recordings below this folder can be read (default: where it runs)")


def run(args: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    if not os.path.isdir(args.folder):
        raise Failure(f"there is no folder {args.folder!r}", USAGE)
    try:
        anyio = import_extra("anyio", "mcp", "this command")
        stdio = import_extra("mcp.server.stdio", "mcp", "this command")
    except ImportError as error:
        raise Failure(str(error), USAGE) from None
    server = make_server(args.folder)

    async def serve() -> None:
        async with stdio.stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(serve)
    return FINE


def make_server(folder: str) -> Any:
    """The server of the questions about recordings below a folder: an mcp.server.lowlevel.Server."""
    anyio = import_extra("anyio", "mcp", "this command")
    lowlevel = import_extra("mcp.server.lowlevel", "mcp", "this command")
    types = import_extra("mcp.types", "mcp", "this command")
    answers = Answers(folder)

    async def list_tools(context: Any, params: Any) -> Any:
        tools = [(each.name, each.description, each.schema) for each in answers.questions]
        tools.append((_MORE, "Another part of an answer that was cut.", _MORE_SCHEMA))
        return types.ListToolsResult(
            tools=[types.Tool(name=name, description=text, input_schema=schema) for name, text, schema in tools]
        )

    async def call_tool(context: Any, params: Any) -> Any:
        arguments = dict(params.arguments or {})
        try:
            if params.name == _MORE:
                text = answers.more(str(arguments.get("answer")), int(arguments.get("part", 0)))
            else:
                text = await anyio.to_thread.run_sync(answers.ask, params.name, arguments)
        except (WrongQuestionError, ValueError, TypeError) as error:
            return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    own = command.version("mindtorch_v2") or None
    return lowlevel.Server("mtprof", version=own, instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)
