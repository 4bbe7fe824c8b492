"""Results of a finished recording, whether it ran in this process or was read from a file.

A store comes in; `mixin` has the methods that live and loaded profiles share, `loaded` opens files, and `writers` has the
table of everything that writes a recording.
"""
