"""Flux: finds the Helm releases that it deploys, in files and kustomizations."""
