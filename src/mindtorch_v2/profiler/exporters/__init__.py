"""Writers that views use: text table, Chrome trace, stacks, memory timeline, notebook table.

In: a store, or events; out: a file or a text. Writers of other formats are in `formats`; results/writers.py has the table of
all, and says how to add one.
"""
