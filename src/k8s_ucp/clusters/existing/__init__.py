"""The existing provider: clusters that ucp did not create."""
