"""`ucp board`: one page on loopback that shows a topology as it changes."""
