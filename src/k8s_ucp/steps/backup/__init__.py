"""The backup: written to the core repository, and restored to a new core cluster."""
