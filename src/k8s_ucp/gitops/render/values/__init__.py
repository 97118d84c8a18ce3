"""Values for the templates, computed from the topology. Pure."""
