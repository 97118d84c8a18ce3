"""Checks the files of the repositories before a cluster reads them."""
