"""From many elements to few, and order: sums, statistics, scans, sorting, counting and looking up."""

from . import counting, extremes, quantiles, reduce, scan, search, segment_reduce, sort, statistics, truth
