"""`ucp app import`: the repository, what was chosen of it, and its history."""
