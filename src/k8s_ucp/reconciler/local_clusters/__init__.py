"""The local-clusters controller: creates the clusters of LocalClusters on this machine."""
