"""Merges what was rendered with what people committed, and pushes it."""
