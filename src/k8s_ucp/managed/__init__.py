"""Managed resources of Crossplane: what all providers do with them, whatever the cloud."""
