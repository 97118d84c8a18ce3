"""Which objects on an existing core cluster belong to ucp: recorded and marked."""
