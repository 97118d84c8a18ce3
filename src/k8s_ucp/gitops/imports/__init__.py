"""Finds the apps of an existing GitOps repository, and what `ucp app import` can import."""
