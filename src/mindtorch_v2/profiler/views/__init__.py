"""torch's objects for a recording: events, averages, lists, trees.

A store comes in; `EventFactory` makes an object for a row when it is first used, and `row_objects` lets such an object read
its attributes from the columns on demand.
"""
