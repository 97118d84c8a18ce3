"""Git repositories on this machine: read, commit and push, with ucp's own git settings."""
