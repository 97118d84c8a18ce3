"""Secrets that ask for a password get one, once, and keep it."""
