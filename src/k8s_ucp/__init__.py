"""k8s-ucp: creates a running universal control plane from one topology file."""

__version__ = "0.1.0"
