"""Runs a plan: independent steps side by side, waits, a journal of what was done."""
