"""git repositories on this machine: read, committed to, pushed, with settings of our own."""
