"""k8s-ucp: one topology file becomes a running universal control plane."""

__version__ = "0.1.0"
