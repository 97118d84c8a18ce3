"""What README.md and docs/ show; `make pictures` makes all of it anew."""
