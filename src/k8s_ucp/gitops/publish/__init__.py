"""Merges a render with the commits of users, and pushes the result."""
