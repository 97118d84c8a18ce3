"""The topology file, `ucp.yaml`: what a user wants, checked before anything is changed.

The keys are in model.py and parts.py, the rules between values in rules/, the words for what is
wrong with a file in problems.py, the file that `ucp start` writes in text.py, its edits in edit.py,
the JSON Schema for editors in schema.py.
"""

from k8s_ucp.topology.file import APP_WORDS, APPS, default, known_app, load, parse, read_topology
from k8s_ucp.topology.model import Metadata, Spec, Topology
from k8s_ucp.topology.parts import (
    App,
    AppCluster,
    Chart,
    CoreCluster,
    CrossplaneSettings,
    Database,
    Environment,
    Git,
    Mirror,
    Team,
)
from k8s_ucp.topology.values import NAME_PATTERN, Name

__all__ = [
    "APPS",
    "APP_WORDS",
    "NAME_PATTERN",
    "App",
    "AppCluster",
    "Chart",
    "CoreCluster",
    "CrossplaneSettings",
    "Database",
    "Environment",
    "Git",
    "Metadata",
    "Mirror",
    "Name",
    "Spec",
    "Team",
    "Topology",
    "default",
    "known_app",
    "load",
    "parse",
    "read_topology",
]
