"""`ucp promote`, `ucp rollback` and `ucp history`."""
