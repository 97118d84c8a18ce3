"""Renders both repositories from the topology and the templates."""
