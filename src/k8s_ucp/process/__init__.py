"""The way to other programs: run one, start one that outlives us, recognize one later.

Besides, git/ runs git, and compositions/ the functions of users.

Any user of a machine can read argv, so secrets are passed by `stdin` or `env`, never by argv.
"""

from k8s_ucp.process.identity import (
    ProcessIdentity,
    identify,
    is_running,
    is_start_of,
    terminate,
    terminate_all,
    wait_exited,
)
from k8s_ucp.process.inotify import INOTIFY, check_inotify
from k8s_ucp.process.owner import act_as_owner, place_of_sudo
from k8s_ucp.process.programs import (
    OUTPUT_KEPT,
    RunningPrograms,
    find_program,
    passed_on,
    run,
    spawn,
)
from k8s_ucp.process.search import (
    available_memory,
    is_marked,
    is_mentioned,
    listener,
    listeners,
    mark_of,
    marked,
    peak_bytes,
    working_folder,
    working_in,
    works_in,
)

__all__ = [
    "INOTIFY",
    "OUTPUT_KEPT",
    "ProcessIdentity",
    "RunningPrograms",
    "act_as_owner",
    "available_memory",
    "check_inotify",
    "find_program",
    "identify",
    "is_marked",
    "is_mentioned",
    "is_running",
    "is_start_of",
    "listener",
    "listeners",
    "mark_of",
    "marked",
    "passed_on",
    "peak_bytes",
    "place_of_sudo",
    "run",
    "spawn",
    "terminate",
    "terminate_all",
    "wait_exited",
    "working_folder",
    "working_in",
    "works_in",
]
