"""`ucp app import`: reads the repository, selects apps, and keeps their history."""
