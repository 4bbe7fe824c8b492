"""The `mtprof` command: one small module per subcommand."""
