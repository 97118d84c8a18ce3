"""Ends everything for good: environments, databases where asked for, and the core."""
