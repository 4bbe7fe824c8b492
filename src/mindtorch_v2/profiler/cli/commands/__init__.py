"""The subcommands of `mtprof`, one module each, in packages by what a user wants. A new file there is a new command.

Nothing else registers it. A module is named as its command and has what `cli.command.Command` asks for: a docstring whose
first line is the help text, EXAMPLE, `add_arguments(parser)` and `run(args)`. Its page in docs/commands is written by
`make docs`, from a text in tools/command_pages.py. The docstring of a package is its title in `mtprof --help`.
"""

GROUPS = ("record", "read", "compare", "convert", "live")  # in the order of `mtprof --help`
