"""AWS's resources in the cloud on this machine: what declares them, made and kept there."""
