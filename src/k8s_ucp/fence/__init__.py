"""The fence: which core may act for a topology, by an epoch in the core repository."""
