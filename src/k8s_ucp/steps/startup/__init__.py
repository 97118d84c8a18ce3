"""Starts the core cluster and the components, and applies what Argo CD can't apply yet."""
