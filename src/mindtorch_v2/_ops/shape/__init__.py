"""The same elements in another shape or order: views, copies of views, joins and rearrangements."""

from . import dim_order, join, rearrange, slice_scatter, view, view_complex, view_copies, view_inplace, view_parts, view_split
