"""Newer versions for what runs, one part at a time, with a way back."""
