"""Where tensors come from and what they turn into: factories, data, files, copies, conversions."""

from . import (
    complex_numbers,
    conversion,
    copy,
    copy_protocols,
    dlpack,
    factories,
    from_data,
    from_file,
    legacy_constructors,
    pinned,
    python_functions,
    ranges,
)
