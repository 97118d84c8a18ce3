"""Releases of publishers: where they are, and which hash each file must have."""
