"""Access to clusters: kubeconfigs, credentials, tokens, and the objects of a registration."""
