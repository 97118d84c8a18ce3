"""The kind provider: real clusters, each a container of the user's engine."""
