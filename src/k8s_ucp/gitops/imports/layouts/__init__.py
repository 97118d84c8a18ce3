"""Finds apps by the folders of a repository."""
