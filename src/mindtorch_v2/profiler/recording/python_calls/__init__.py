"""Which Python functions ran when: traced by `sys.setprofile` or, since Python 3.12, by `sys.monitoring`."""
