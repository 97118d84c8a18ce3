"""The embedded provider: control planes as processes of this machine, with simulated nodes."""
