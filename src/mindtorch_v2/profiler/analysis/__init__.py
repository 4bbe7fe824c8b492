"""Analyses of an EventStore, of a live profile as well as of a file.

Packages by what they are about: `source` (lines and files of the program), `memory`, `device`, `comparison` of recordings, and
`advice`, one rule a file. What they share stands beside them: `steps`, `calltree` and `module_tree`, `overhead`, `findings`.
"""
