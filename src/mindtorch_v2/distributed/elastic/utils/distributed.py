"""torch.distributed.elastic.utils.distributed: free ports."""

from __future__ import annotations

from ..._absent import absent_function
from .api import get_socket_with_port

__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]

create_c10d_store = absent_function(__name__, "create_c10d_store")  # torch.distributed.TCPStore is one


def get_free_port() -> int:
    """A port of this machine that was free a moment ago."""
    with get_socket_with_port() as found:
        return int(found.getsockname()[1])
