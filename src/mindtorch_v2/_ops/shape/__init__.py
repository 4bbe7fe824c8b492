"""The same elements in another shape or order: views, copies of views, joins and rearrangements."""

from . import (
    broadcast,
    combine,
    dim_order,
    join,
    rearrange,
    slice_scatter,
    transpose,
    view,
    view_complex,
    view_copies,
    view_inplace,
    view_parts,
    view_split,
)
