"""Builds, reads and edits kustomizations, Helm charts and manifests."""
