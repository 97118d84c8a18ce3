"""The `ucp.yaml` that the wizard and `--yes` write: the choices, with comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from k8s_ucp.clouds import database_providers
from k8s_ucp.providers import PROVIDERS

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Topology
    from k8s_ucp.topology.parts import App, CoreCluster, Environment

_HEAD = """\
# yaml-language-server: $schema=ucp.schema.json
# What you want: one core cluster, an app cluster for each environment, and
# the apps that run there. `ucp start` creates or updates all of it; run it
# again after every edit. No secrets belong in this file: it is committed to
# the core repository.
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata:
  name: {name}
spec:
  domain: {domain}  # hosts of apps: <host>.<environment>.<domain>
  core:
{core}
  git:
    provider: {git}  # local: in gitops/; url: yours, with core: and apps:
"""


def topology_text(topology: Topology) -> str:
    """The file for a topology of the wizard; what it doesn't ask for is left at the default."""
    spec = topology.spec
    text = _HEAD.format(
        name=_quoted(topology.name),
        domain=spec.domain,
        core=_core(spec.core),
        git=spec.git.provider,
    )
    text += _block(
        "environments", "in the order of promotion", [_environment(e) for e in spec.environments]
    )
    text += _block(
        "apps",
        "tag: only the first one; afterwards the app repository owns it",
        [_app(each) for each in spec.apps],
    )
    if spec.databases:
        items = [
            f"    - {{name: {_quoted(each.name)}, provider: {each.provider}}}\n"
            for each in spec.databases
        ]
        text += _block("databases", " or ".join(database_providers()), items)
    for cloud in spec.clouds.simulated:
        text += f"  clouds: {{{cloud}: {{simulated: true}}}}  # on this machine: docs/cloud.md\n"
    return text


def _core(core: CoreCluster) -> str:
    words = PROVIDERS[core.provider].comment
    lines = [f"    provider: {core.provider}" + (f"  # {words}" if words else "")]
    if core.ports:
        ports = f"{{http: {core.ports.http}, https: {core.ports.https}}}"
        lines.append(f"    ports: {ports}  # of this machine, for traffic to the core")
    return "\n".join(lines)


def _block(key: str, comment: str, items: list[str]) -> str:
    if not items:
        return f"  {key}: []\n"
    return f"  {key}:  # {comment}\n" + "".join(items)


def _environment(environment: Environment) -> str:
    text = f"    - name: {_quoted(environment.name)}\n"
    text += f"      cluster: {{provider: {environment.cluster.provider}}}\n"
    if environment.promotes_from:
        text += f"      promotesFrom: {_quoted(environment.promotes_from)}\n"
    return text


def _app(app: App) -> str:
    text = f"    - name: {_quoted(app.name)}\n"
    if app.image:
        text += f'      image: {app.image}\n      tag: "{app.tag}"\n'
    if app.path:
        text += f'      path: "{app.path}"\n'
    if app.hosts:
        text += f"      hosts: [{', '.join(_quoted(each) for each in app.hosts)}]\n"
    if app.database:
        text += f"      database: {_quoted(app.database)}\n"
    return text


def _quoted(name: str) -> str:
    """A name as YAML: without quotes, `1`, `1e3` or `null` would not be a string."""
    plain = name.isascii() and name[0].isalpha() and name not in _WORDS
    return name if plain else f'"{name}"'


_WORDS = frozenset(["null", "true", "false", "yes", "no", "on", "off", "y", "n"])
