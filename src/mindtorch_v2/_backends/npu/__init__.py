"""Ascend devices: the binding to CANN's C interface, device memory, streams and events."""
