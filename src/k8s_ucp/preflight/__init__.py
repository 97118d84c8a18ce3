"""Checks of what can be known before anything is changed. They change nothing."""
