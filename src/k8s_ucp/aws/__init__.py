"""AWS's resources as Crossplane's providers declare them, for the cloud on this machine."""
