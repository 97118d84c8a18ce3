"""Runs a plan: independent steps in parallel, waits, and a journal of what was done."""
