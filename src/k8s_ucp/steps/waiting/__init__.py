"""Waits until clusters, applications and ingress are as declared in git."""
