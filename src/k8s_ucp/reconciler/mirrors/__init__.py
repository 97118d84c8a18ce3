"""The mirrors controller: Secrets and ConfigMaps of the core, copied to app clusters."""
