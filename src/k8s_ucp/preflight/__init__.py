"""Checks before anything is changed; they change nothing themselves."""
