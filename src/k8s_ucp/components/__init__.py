"""The components of a core cluster (Argo CD, Crossplane, the reconciler) in both placements."""
