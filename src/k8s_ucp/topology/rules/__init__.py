"""Rules that need more than one value of a topology. Pure functions."""
