"""The registration controller: kubeconfig Secrets become Argo CD cluster Secrets."""
