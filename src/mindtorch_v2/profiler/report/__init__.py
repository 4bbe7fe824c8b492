"""The report: one HTML page that shows a recording without server or network, and short tables for notebooks."""
