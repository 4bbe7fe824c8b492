"""Pooling: windows of fixed or adaptive size, and the way back."""

from . import adaptive_pool, pool, unpool
