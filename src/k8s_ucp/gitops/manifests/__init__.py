"""Kustomizations, charts and manifests: built, read and edited."""
