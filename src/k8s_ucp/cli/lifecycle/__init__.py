"""`ucp start` and `ucp stop`."""
