"""Turns the arguments of `ucp app add` into an item of ucp.yaml, with pinned and copied sources."""
