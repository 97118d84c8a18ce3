"""Components that others run on the core cluster and a topology uses."""
