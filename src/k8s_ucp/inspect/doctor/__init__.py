"""The findings of `ucp doctor`: problems, causes and next commands."""
