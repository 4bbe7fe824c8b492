"""Devices other than the CPU: what talks to their drivers. Nothing here is imported before a device is asked for."""
