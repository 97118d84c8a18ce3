"""Finds and edits the versions in an environment's folder, for each form of app."""
