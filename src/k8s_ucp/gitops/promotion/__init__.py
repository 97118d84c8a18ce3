"""Promotion: an image tag from a pipeline to an environment, and back, so that none is lost."""
