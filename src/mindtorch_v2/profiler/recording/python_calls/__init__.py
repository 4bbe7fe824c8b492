"""Python calls, by `sys.setprofile` or, since Python 3.12, `sys.monitoring`."""
