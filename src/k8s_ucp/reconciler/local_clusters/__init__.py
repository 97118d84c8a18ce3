"""The local-clusters controller: LocalClusters become clusters on this machine."""
