"""The report: one HTML page that shows a recording without server or network.

In: a store with findings, memory uses and overhead (or a Diff, for `comparison`); out: a file. `data` turns the store into
packed columns, `html` puts them and the scripts of assets/ into a page, and the page computes its views from the columns.
"""
