"""Ops of other projects' compiled libraries, in Python: declared when `torch.ops.load_library` is asked for the library."""
