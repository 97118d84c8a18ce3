"""Commands that start, stop, upgrade, recreate and destroy topologies."""
