"""Rehearses an upgrade on a throwaway copy of the core cluster."""
