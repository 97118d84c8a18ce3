"""Teardown: deletes environments, databases if requested, and the core cluster."""
