"""Pods placement: components as workloads of the core cluster, and the images they need."""
