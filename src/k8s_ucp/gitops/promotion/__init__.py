"""Promotions of image tags and chart versions to environments, and rollbacks."""
