"""Releases of publishers: URLs, and the expected hash of each file."""
