"""What composite resources become: composition functions, and a pipeline of them without a cluster.

Decisions are pure (patch_and_transform.py, pipeline.py); server.py serves them to Crossplane.
"""
