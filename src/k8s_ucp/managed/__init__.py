"""Managed resources of Crossplane: what every provider does with one, whatever the cloud."""
