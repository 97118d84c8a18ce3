"""AWS resources of the simulated cloud: creates and updates what the core cluster declares."""
