"""Existing Argo CD and Crossplane installations that a topology adopts."""
