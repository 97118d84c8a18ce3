"""Reads what is there and judges it: status, doctor, the bundle for a report."""
