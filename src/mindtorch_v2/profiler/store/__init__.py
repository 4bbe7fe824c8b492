"""`EventStore`: a finished recording as NumPy columns and the tables they index.

`assembly` and `formats` build stores; everything above reads them. `derived` computes further columns on demand with the pure
functions of `tree`; `categories` has Kineto's names of rows; `memory_profile` says what memory was used for.
"""
