"""Processes that run: the control socket of an armed one, its page for a browser, and its statistics for other systems.

Nothing is opened unless the program, or the variable MTPROF in its environment, asks for it.
"""
