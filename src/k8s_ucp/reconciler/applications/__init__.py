"""Keeps Argo CD's Applications from hiding commits that an API server rejects."""
