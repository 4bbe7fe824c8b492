"""Random programs of tensors, run in PyTorch and here: what `tools/fuzz_programs.py` is made of.

A program is data: a list of statements, each a dictionary that JSON can hold. `table.py` lists the ops and the kinds of their
arguments, `generate.py` makes programs, `machine.py` runs them, `compare.py` says in what two runs differ, `shrink.py` makes a
differing program small, `render.py` writes it as Python.
"""
