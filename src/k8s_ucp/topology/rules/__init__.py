"""Rules that a single value of a topology can't show. Pure."""
