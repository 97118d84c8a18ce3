"""What keeps the pods of unhealthy Applications from running."""
