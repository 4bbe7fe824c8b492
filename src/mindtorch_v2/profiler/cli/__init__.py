"""The `mtprof` command: reads recordings through `results` and prints what `analysis`, `views` and `report` make of them.

`main` finds the subcommand among the modules of `commands` and runs it; the other modules here are what commands share.
"""
