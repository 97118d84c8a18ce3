"""The backup: state that only the core cluster has, kept in the core repository."""
