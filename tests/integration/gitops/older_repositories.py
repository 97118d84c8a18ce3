"""The repositories as older versions wrote them: with the ApplicationSets in the app repository."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.git.clones import make_clone
from k8s_ucp.git.repository import RENDERED, RefUpdate, Repository
from k8s_ucp.workspace import GitopsFolder

SETS = ("applications/protected.yaml", "applications/unprotected.yaml")
PROJECT = b"""\
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata:
  name: application-sets
  namespace: argocd
  annotations:
    argocd.argoproj.io/sync-wave: "-10"
    argocd.argoproj.io/sync-options: Prune=false
spec:
  description: ApplicationSets of the app repository
  sourceRepos:
    - "%s"
  destinations:
    - name: in-cluster
      namespace: argocd
  namespaceResourceWhitelist:
    - group: argoproj.io
      kind: ApplicationSet
"""


def write_older_layout(folder: GitopsFolder, person: Path) -> None:
    """Move the ApplicationSets back, with commits on top of both the branch and the last render.

    person: where clones may be created. The app repository comes first, because Argo CD must find
    the ApplicationSets there.
    """
    remotes = {"core": folder.core_remote, "apps": folder.apps_remote}
    core = Repository(remotes["core"]).read("main")
    urls = {name: remote.as_uri().encode() for name, remote in remotes.items()}
    application = next(each for each in core if each.endswith("/applications.yaml"))
    listed = "projects/kustomization.yaml"
    older = core[application].replace(b"project: infrastructure", b"project: application-sets")
    changes: dict[str, dict[str, bytes | None]] = {
        "apps": {path: core[path] for path in SETS},
        "core": {
            **dict.fromkeys(SETS),
            application: older.replace(urls["core"], urls["apps"]),
            "projects/application-sets.yaml": PROJECT % urls["apps"],
            listed: core[listed].replace(
                b"  - applications.yaml\n", b"  - applications.yaml\n  - application-sets.yaml\n"
            ),
        },
    }
    for name, wanted in changes.items():
        clone = make_clone(person / f"older-{name}", urls[name].decode())
        clone.fetch()
        clone.git("fetch", "-q", "origin", f"+{RENDERED}:{RENDERED}")
        updates = []
        for there, ref in (("refs/heads/main", "origin/main"), (RENDERED, RENDERED)):
            tip = clone.resolve(ref)
            assert tip
            updates.append(RefUpdate(there, clone.write_commit("Older", wanted, parent=tip), tip))
        clone.push(updates)
