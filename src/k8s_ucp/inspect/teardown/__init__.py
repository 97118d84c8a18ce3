"""What teardowns note beside the state of a topology, for those that look later."""
