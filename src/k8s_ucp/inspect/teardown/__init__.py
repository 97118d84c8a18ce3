"""Records of a teardown beside the state of a topology, for later commands."""
