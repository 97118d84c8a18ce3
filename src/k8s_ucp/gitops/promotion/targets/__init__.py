"""What a promotion can change in an environment's folder, by the form that the app has."""
