"""Ends everything, or takes it away from a core of others."""
