"""Creates the pictures of README.md and docs/; `make pictures` creates all of them anew."""
