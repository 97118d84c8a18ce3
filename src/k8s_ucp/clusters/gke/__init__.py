"""The gke provider: clusters of Google Kubernetes Engine."""
