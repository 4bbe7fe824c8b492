"""The subcommands of `mtprof`, one module each. A new file here is a new command: nothing else registers it.

A module is named as its command and has what `cli.command.Command` asks for: a docstring whose first line is the help text,
EXAMPLE, `add_arguments(parser)` and `run(args)`. Its page in docs/commands is written by `make docs`, from a text in
tools/command_pages.py.
"""
