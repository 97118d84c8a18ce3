"""What runs on the core cluster: Argo CD, Crossplane, the reconciler, and where they run."""
