"""Reads and evaluates the state of a topology: status, doctor, support bundle."""
