"""Reading and writing at positions: subscripts, index ops, gather and scatter, masks."""

from . import along_dim, flat_positions, index, masked, masked_fill, masked_index, scatter, subscripts
