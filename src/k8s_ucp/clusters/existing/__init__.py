"""The existing provider: clusters that others made."""
