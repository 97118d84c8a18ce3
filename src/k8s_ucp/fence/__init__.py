"""The fence: which core cluster may act for a topology, by an epoch in the core repository."""
