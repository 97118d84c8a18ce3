"""AWS resources with the CRDs of Crossplane's provider, implemented with the simulated cloud."""
