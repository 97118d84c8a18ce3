"""Checks the files of the repositories before Argo CD applies them."""
