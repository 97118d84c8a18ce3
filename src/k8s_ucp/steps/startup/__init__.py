"""Starts the core cluster, and applies what Argo CD can't apply yet."""
