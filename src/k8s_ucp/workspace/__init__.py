"""Paths of the workspace folder, its hidden state, the user's cache and runtime folders.

Layout: `ucp.yaml`, `creds/`, `gitops/<topology>/`, `.ucp/<topology>/`. Folders with state are 0700
and their files 0600, because they contain keys and kubeconfigs.
"""

from k8s_ucp.workspace.cache import UNWRITABLE, advise_writable, cache_folder, home_folder
from k8s_ucp.workspace.files import (
    FILE_MODE,
    FOLDER_MODE,
    make_private_folder,
    read_regular_file,
    rename_synced,
    replace_file,
    write_private_file,
    write_private_json,
    writing,
)
from k8s_ucp.workspace.folders import GitopsFolder, StateFolder
from k8s_ucp.workspace.sockets import make_socket_folder, socket_folder_of_config
from k8s_ucp.workspace.workspace import Workspace, enclosing_workspace

__all__ = [
    "FILE_MODE",
    "FOLDER_MODE",
    "UNWRITABLE",
    "GitopsFolder",
    "StateFolder",
    "Workspace",
    "advise_writable",
    "cache_folder",
    "enclosing_workspace",
    "home_folder",
    "make_private_folder",
    "make_socket_folder",
    "read_regular_file",
    "rename_synced",
    "replace_file",
    "socket_folder_of_config",
    "write_private_file",
    "write_private_json",
    "writing",
]
