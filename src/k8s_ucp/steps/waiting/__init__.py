"""Waits until clusters, applications and ingress are as git says."""
