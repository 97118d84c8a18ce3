"""Decides which topology `ucp start` starts: from the file, the flags or the wizard."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.topology_selection import (
    declared_file,
    no_file_of,
    refuse_lost_file,
    start_command,
)
from k8s_ucp.clouds import CLOUDS
from k8s_ucp.engine.pipeline import RunInterrupted
from k8s_ucp.errors import UsageError
from k8s_ucp.providers import (
    DEFAULT,
    PROVIDERS,
    core_providers,
    environment_providers,
    offered_cores,
)
from k8s_ucp.topology import CoreCluster, Topology, default, load
from k8s_ucp.topology.edit import with_words
from k8s_ucp.topology.parts import ADOPTABLE, Clouds, CorePorts
from k8s_ucp.topology.problems import nearest
from k8s_ucp.topology.rules.all_rules import find_problems
from k8s_ucp.topology.text import topology_text

if typing.TYPE_CHECKING:
    from k8s_ucp.cli.questions import Answers

PROPOSED_NAME = "demo"
PROPOSED_ENVIRONMENTS = ("stage", "prod")
PROPOSED_APPS = ("echo",)
SIMULATED = next(name for name, each in CLOUDS.items() if each.simulated)
_EXAMPLE = f"ucp start --topology demo --env stage={DEFAULT} --env prod={DEFAULT} --app echo"


@dataclass(frozen=True)
class Flags:
    """The flags of the command line about the topology."""

    yes: bool = False
    file: Path | None = None
    core: str | None = None
    environments: tuple[tuple[str, str], ...] | None = None
    """(name, provider); None: not given."""
    apps: tuple[str, ...] | None = None
    ports: tuple[int, int] | None = None
    """HTTP and HTTPS ports, for a core whose nodes accept traffic."""
    adopt: tuple[str, ...] = ()
    """Components of an existing core to adopt."""
    simulate: bool = False
    """Simulate AWS on this machine."""

    @property
    def describe_topology(self) -> bool:
        return bool(self.core or self.environments or self.apps or self.ports or self.simulate)


@dataclass(frozen=True)
class StartRequest:
    """A validated topology and its file, which may not be written yet."""

    topology: Topology
    text: str
    path: Path
    exists: bool
    changed: str = ""
    """The key that the flags add to an existing file."""
    read: str = ""
    """The content of that file."""


def parse_flags(
    *,
    yes: bool,
    file: Path | None,
    core: str | None,
    environments: Sequence[str] | None,
    apps: Sequence[str] | None,
    ports: str | None = None,
    adopt: str | None = None,
    simulate: bool = False,
) -> Flags:
    """Parse and validate the flags. Raises UsageError."""
    if core is not None:
        _check_provider("--core", core, core_providers())
    pairs = []
    for each in environments or ():
        name, equals, provider = each.partition("=")
        provider = provider if equals else _beside(core)
        _check_provider(f"--env {name}", provider, environment_providers())
        pairs.append((name, provider))
    return Flags(
        yes,
        file,
        core,
        None if environments is None else tuple(pairs),
        None if apps is None else tuple(apps),
        None if ports is None else _ports(ports),
        () if adopt is None else _adopt(adopt),
        simulate,
    )


def _beside(core: str | None) -> str:
    """The provider of app clusters, unless specified."""
    return core or DEFAULT


def _ports(text: str) -> tuple[int, int]:
    parts = text.split(",")
    numbers = [int(each) for each in parts if each.isascii() and each.isdigit()]
    if len(parts) != 2 or len(numbers) != 2 or not all(0 < each < 65536 for each in numbers):
        core = next(name for name, each in PROVIDERS.items() if each.takes_traffic)
        raise UsageError(
            f"--ports: {text!r} is not a valid pair of ports (HTTP,HTTPS)",
            next=f"ucp start --core {core} --ports 8080,8443",
        )
    return numbers[0], numbers[1]


def _adopt(text: str) -> tuple[str, ...]:
    """The components, without duplicates, in their canonical order."""
    parts = [each.strip() for each in text.split(",")]
    if unknown := [each for each in parts if each not in ADOPTABLE]:
        raise UsageError(
            f"--adopt: {unknown[0]!r} is not an adoptable component; valid values: "
            f"{', '.join(ADOPTABLE)}",
            next=f"ucp start --adopt {','.join(ADOPTABLE)}",
        )
    return tuple(each for each in ADOPTABLE if each in parts)


def resolve_topology(call: Invocation, flags: Flags, *, plan: bool = False) -> StartRequest:
    """The topology to start; asks if there is no file and somebody to ask. Writes nothing.

    plan: the start is only shown, so nobody has to agree to it.
    Raises UsageError, or RunInterrupted at a question.
    """
    path = _file(call, flags)
    if flags.file or path.exists():
        return _from_file(call, flags, path)
    if not flags.describe_topology:
        refuse_lost_file(call.workspace, call.topology, path)
    name = call.topology or _proposed_name(call, flags)
    # Cores that the wizard offers have nothing to adopt: refused without asking anything.
    if flags.yes or flags.adopt or flags.core not in (None, *offered_cores()):
        wanted = _new(name, flags, path)
        if flags.core is None and (best := _choices()[0][0]) != DEFAULT:
            call.console.say(
                f"The core is {DEFAULT}: its pods are simulated. For real pods: "
                f"ucp start --core {best}"
            )
        return wanted
    from k8s_ucp.cli import questions

    if not questions.can_ask():
        from k8s_ucp.cli.plan_runner import command_line

        raise questions.NoTerminal(
            f"{path} does not exist, and the wizard",
            next=f"{command_line()} --yes (by default: {DEFAULT} core, environments stage and "
            "prod, app echo)",
        )
    clusters, missing = _choices()
    # What a flag specifies isn't asked.
    cores = [flags.core] if flags.core else clusters
    proposed = questions.Answers(cores[0], _names(flags), flags.apps or PROPOSED_APPS)
    if missing and flags.core is None:
        call.console.say(f"The core cluster uses the {clusters[0]} provider.\n{missing}")
    try:
        answers = questions.ask_topology(proposed, cores, clusters)
        if PROVIDERS[answers.core].takes_traffic and not flags.ports:
            answers = _with_ports(answers)
        flags = _with_simulation(call, _answered(answers, flags))
        wanted = _new(call.topology or _proposed_name(call, flags), flags, path)
        call.console.say(f"\nContent of the new file {path}:\n\n{_indented(wanted.text)}")
        agreed = plan or questions.confirm("Write the file and start?")
    except KeyboardInterrupt:
        raise RunInterrupted("interrupted; nothing was written", next="ucp start") from None
    if not agreed:
        raise UsageError("nothing was written and nothing started", next="ucp start")
    return wanted


def _file(call: Invocation, flags: Flags) -> Path:
    if flags.file:
        return flags.file.expanduser().resolve()
    if flags.describe_topology and not call.topology:
        # A new topology beside one that was started with --file.
        return call.workspace.topology_file
    return declared_file(call)


def _from_file(call: Invocation, flags: Flags, path: Path) -> StartRequest:
    topology = load(path)
    if call.topology and call.topology != topology.name:
        started = call.topology in call.workspace.started()
        if started and not flags.file:
            raise no_file_of(call.workspace, call.topology)
        raise UsageError(
            f"{path} defines the topology {topology.name}, not {call.topology}",
            next=start_command(call, call.topology)
            if started
            else f"ucp start --topology {topology.name}",
        )
    if flags.describe_topology:
        _check_agreement(flags, topology, path)
    text = read = path.read_text("utf-8")
    if new := [each for each in flags.adopt if each not in topology.spec.core.adopt]:
        text, topology = with_words(text, ("core", "adopt"), new, path)
        return StartRequest(topology, text, path, exists=True, changed="spec.core.adopt", read=read)
    return StartRequest(topology, text, path, exists=True, read=read)


def _check_agreement(flags: Flags, topology: Topology, path: Path) -> None:
    """The file takes precedence; flags may repeat its values, so that commands can be rerun."""
    spec = topology.spec
    declared = {each.name: each.cluster.provider for each in spec.environments}
    apps = [each.name for each in spec.apps]
    differing = [
        *([f"--core {flags.core}"] if flags.core not in (None, spec.core.provider) else []),
        *(
            f"--env {name}={kind}"
            for name, kind in flags.environments or ()
            if declared.get(name) != kind
        ),
        *(f"--app {each}" for each in flags.apps or () if each not in apps),
        *(
            [f"--ports {flags.ports[0]},{flags.ports[1]}"]
            if flags.ports and flags.ports != _of(spec.core.ports or CorePorts())
            else []
        ),
        *(["--cloud local"] if flags.simulate and SIMULATED not in spec.clouds.simulated else []),
    ]
    if differing:
        raise UsageError(
            f"{path} exists and contradicts {', '.join(differing)}",
            next=f"edit {path}, then run ucp start without these flags",
        )


def _of(ports: CorePorts) -> tuple[int, int]:
    return ports.http, ports.https


def _new(name: str, flags: Flags, path: Path) -> StartRequest:
    from pydantic import ValidationError

    apps = PROPOSED_APPS if flags.apps is None else flags.apps
    try:
        topology = default(
            name,
            _names(flags),
            apps,
            core=_core(flags),
            providers=dict(
                flags.environments or ((each, _beside(flags.core)) for each in _names(flags))
            ),
            clouds=Clouds.model_validate({SIMULATED: {"simulated": flags.simulate}}),
        )
    except ValidationError as error:
        raise UsageError(
            f"{error.errors()[0]['input']!r} is not a valid name: use lower-case "
            "letters, digits and '-', a letter or digit first and last, at most 40 "
            "characters (RFC 1123)",
            next=_EXAMPLE,
        ) from error
    if problems := find_problems(topology):
        by_flags = topology.spec.core.provider in offered_cores()
        raise UsageError(
            "; ".join(each.message for each in problems),
            next=_EXAMPLE
            if by_flags
            else f"write {path} (example in docs/cores.md), then: ucp start",
        )
    return StartRequest(topology, topology_text(topology), path, exists=False)


def _proposed_name(call: Invocation, flags: Flags) -> str:
    """With digits of this workspace if a cloud account will have resources of that name.

    Crossplane manages what it finds under a name, so two workspaces must not propose the same one.
    The digits are the same for `--plan` and the start after it.
    """
    providers = [flags.core or DEFAULT, *(each for _, each in flags.environments or ())]
    clouds = {cloud for each in providers if (cloud := PROVIDERS[each].cloud)}
    if clouds <= ({SIMULATED} if flags.simulate else set()):
        return PROPOSED_NAME
    return f"{PROPOSED_NAME}-{call.workspace.machine_id(PROPOSED_NAME)[:4]}"


def _names(flags: Flags) -> tuple[str, ...]:
    if flags.environments is None:
        return PROPOSED_ENVIRONMENTS
    return tuple(name for name, _ in flags.environments)


def _core(flags: Flags) -> CoreCluster:
    settings: dict[str, typing.Any] = {"provider": flags.core or DEFAULT}
    if flags.ports:
        settings["ports"] = {"http": flags.ports[0], "https": flags.ports[1]}
    if flags.adopt:
        settings["adopt"] = flags.adopt
    return CoreCluster.model_validate(settings)


def _answered(answers: Answers, flags: Flags) -> Flags:
    """The answers as flags; providers given by flags are kept."""
    given = dict(flags.environments or ())
    pairs = tuple((each, given.get(each, answers.provider)) for each in answers.environments)
    return replace(
        flags,
        core=answers.core,
        environments=pairs,
        apps=answers.apps,
        ports=answers.ports or flags.ports,
    )


def _with_simulation(call: Invocation, flags: Flags) -> Flags:
    """Enable simulation, if a credential is missing and the person agrees."""
    from k8s_ucp.cli import questions

    used = [name for name, each in flags.environments or () if PROVIDERS[each].cloud == SIMULATED]
    file = call.workspace.credentials / CLOUDS[SIMULATED].file
    if flags.simulate or not used or flags.core != DEFAULT or file.exists():
        return flags
    question = (
        f"There is no {SIMULATED} credential for {', '.join(used)}. Simulate {SIMULATED} here?"
    )
    return replace(flags, simulate=questions.confirm(question))


def _choices() -> tuple[list[str], str]:
    """Providers to propose, those with real pods first; and why one is unavailable."""
    from k8s_ucp.clusters.local import why_unavailable

    found, missing = [], ""
    for name in sorted(offered_cores(), key=lambda each: PROVIDERS[each].simulated):
        if (error := why_unavailable(name)) is None:
            found.append(name)
            continue
        how = f"\n  to enable it: {error.next}" if error.next else ""
        reason = error.message.splitlines()[0]
        missing = f"{name} (with real pods) is not available: {reason}{how}"
    return found, missing


def _with_ports(answers: Answers) -> Answers:
    """Ports instead of 80 and 443, if these are in use and the person agrees."""
    from k8s_ucp.cli import questions
    from k8s_ucp.clusters.kind.checks import free_pair
    from k8s_ucp.clusters.ports import is_taken

    taken = [port for port in (80, 443) if is_taken(port)]
    offer = free_pair() if taken else None
    if offer is None:
        return answers
    numbers = " and ".join(map(str, taken))
    question = (
        f"Port {numbers} is already in use. Use {offer[0]} and {offer[1]} for the core instead?"
    )
    return replace(answers, ports=offer) if questions.confirm(question) else answers


def _check_provider(flag: str, value: str, known: typing.Sequence[str]) -> None:
    if value in known:
        return
    near = nearest(value, known) or known[0]
    raise UsageError(
        f"{flag}: unknown provider '{value}'; allowed: {', '.join(known)}",
        next=f"ucp start {flag}{'=' if flag.startswith('--env') else ' '}{near}",
    )


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
