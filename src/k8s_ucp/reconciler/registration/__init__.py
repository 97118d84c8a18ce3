"""The registration controller: registers clusters with Argo CD from their kubeconfig Secrets."""
