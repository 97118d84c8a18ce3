"""The backup: what a core alone knows is read, written to the core repository, and put back."""
