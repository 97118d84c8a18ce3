"""Ways into clusters: kubeconfigs, credentials, tokens, and what a registration consists of."""
