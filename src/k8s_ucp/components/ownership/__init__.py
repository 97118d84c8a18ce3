"""What is ours on a core cluster that others made: written down, marked, told apart."""
