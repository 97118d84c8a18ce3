"""What only the core knows: written to the core repository, put back into a new core."""
