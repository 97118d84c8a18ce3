"""Upgrades what is running to newer versions, one part at a time, with rollbacks."""
