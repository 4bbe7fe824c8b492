"""What users hold: events, averages and lists of them, made from the rows of a store when they are asked for."""
