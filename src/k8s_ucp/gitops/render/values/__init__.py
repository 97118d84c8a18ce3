"""The values that templates get, each computed from the topology. Pure."""
