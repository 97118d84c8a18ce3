"""The mirrors controller: copies Secrets and ConfigMaps of the core cluster to app clusters."""
