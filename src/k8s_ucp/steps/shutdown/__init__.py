"""Stops a topology, or removes it from an existing core cluster."""
