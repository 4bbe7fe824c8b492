"""Analyses of an EventStore, of a live profile as well as of a file.

`advice` has rules, `diff` compares recordings with the statistics of `evidence`, `overhead` estimates what recording cost,
`calltree` and `module_tree` add up times, `memory_use` and `memory_categories` say what memory was held by and used for.
"""
