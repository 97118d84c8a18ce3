"""A topology as a graph: its parts, their states and their connections."""
