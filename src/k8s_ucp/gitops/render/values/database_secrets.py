"""How an app finds its database: names of Secrets, agreed between databases, mirrors and apps.

A database leaves a connection Secret on the core cluster for each of its environments. A Syncer
copies it to the environment's app cluster, into the namespace of each app that names the database,
always as `database`: manifests read the same Secret on every environment.
"""

from __future__ import annotations

from k8s_ucp.topology.rules.names import DATABASE_COPY

NAMESPACE = "ucp-clusters"
"""Of databases and their connection Secrets, on the core cluster."""
COPY = DATABASE_COPY
"""The Secret that an app reads, in the namespace of its name."""
KEYS = ("endpoint", "port", "username", "password", "database")
"""What is in it."""
SUFFIX = "-connection"


def connection_secret(database: str, environment: str) -> str:
    """Name of the Secret on the core cluster."""
    return f"{database}-{environment}{SUFFIX}"
