"""A topology drawn as a graph: what feeds what, and how each part is."""
