"""Renders both repositories: the topology and the templates become files."""
