"""`ucp promote APP --env ENV --tag TAG`: writes an image tag to the app repository."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from k8s_ucp.cli.command import Invocation, Output, OutputOption, declare, examples, invocation
from k8s_ucp.cli.promotion.landing import Promotions, Proposing, land_promotions
from k8s_ucp.cli.promotion.missing_arguments import (
    EVERY_APP,
    is_complete,
    known_names,
    refuse_incomplete,
    typed_options,
)
from k8s_ucp.cli.promotion.options import seconds
from k8s_ucp.cli.promotion.promote_options import (
    AppArgument,
    BatchOption,
    BranchOption,
    ChartVersionOption,
    DigestOption,
    DryRunOption,
    EnvOption,
    ExpectOption,
    ForceOption,
    ForgeOption,
    ImageOption,
    MergeWhenGreenOption,
    PullRequestOption,
    RepoOption,
    RequireEnvOption,
    RequireHealthyOption,
    SemverOption,
    SequenceOption,
    SoakOption,
    SourceOption,
    TagOption,
    TimeoutOption,
)
from k8s_ucp.cli.promotion.results import repeating, show_landing
from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.image_edit import NO_PIN, Pin
from k8s_ucp.gitops.promotion.batch import read_batch
from k8s_ucp.gitops.promotion.ci import Run, find_run
from k8s_ucp.gitops.promotion.decision import Intent
from k8s_ucp.gitops.promotion.health import HealthGate, application_reader, find_kubeconfig
from k8s_ucp.gitops.promotion.order import Order
from k8s_ucp.gitops.promotion.overlay import check_name
from k8s_ucp.gitops.promotion.targets.kinds import split_reference
from k8s_ucp.gitops.promotion.targets.versions import (
    parse_chart_version,
    parse_digest,
    parse_tag,
    parse_version,
)

app = declare()


@app.command(
    epilog=examples(
        "ucp promote echo --env stage --tag 1.4.0",
        "ucp promote echo --env prod --from stage",
        "ucp promote echo --env prod --from stage --require-healthy --soak 10m",
        "ucp promote web --env stage --chart-version 1.3.0",
        "ucp promote echo --env prod --from stage --dry-run",
        "ucp promote echo --env stage --tag 1.4.0 --repo https://git.example.org/apps.git",
    )
)
def promote(
    ctx: typer.Context,
    app: AppArgument = "",
    every_app: Annotated[bool, typer.Option("--all", hidden=True)] = False,
    env: EnvOption = "",
    tag: TagOption = "",
    digest: DigestOption = "",
    source: SourceOption = "",
    image: ImageOption = None,
    chart_version: ChartVersionOption = None,
    batch: BatchOption = "",
    repo: RepoOption = "",
    branch: BranchOption = "",
    sequence: SequenceOption = None,
    semver: SemverOption = False,
    expect: ExpectOption = "",
    require_env: RequireEnvOption = "",
    require_healthy: RequireHealthyOption = False,
    soak: SoakOption = "",
    pr: PullRequestOption = False,
    merge_when_green: MergeWhenGreenOption = False,
    forge: ForgeOption = "",
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    timeout: TimeoutOption = "5m",
    output: OutputOption = Output.table,
) -> int:
    """Write an image tag to an environment's overlay, commit and push it.

    Exits with 0 if the tag is promoted, unchanged or superseded by a newer one, with 1 if the
    promotion is held, gated or in conflict.
    """
    call, run = invocation(ctx), find_run(os.environ)
    app = EVERY_APP if every_app else app
    if soak and not require_healthy:
        raise UsageError("--soak needs --require-healthy", next="add --require-healthy")
    defaults = Intent(
        app,
        env,
        order=_order(sequence, semver, run),
        expect=expect,
        require_env=require_env,
        force=force,
    )
    if merge_when_green and not pr:
        raise UsageError("--merge-when-green needs --pr", next="add --pr")
    if batch:
        _refuse({"APP": app, "--pr": pr, "--env": env, "--tag": tag, "--digest": digest,
                 "--from": source, "--image": image, "--chart-version": chart_version})  # fmt: skip
        intents = read_batch(_read(batch), batch, defaults)
    else:
        typed = {"--tag": [tag], "--digest": [digest], "--from": [source],
                 "--image": image or [], "--chart-version": chart_version or []}  # fmt: skip
        version = [word for flag in typed for each in typed[flag] if each for word in (flag, each)]
        if not is_complete(app, env, version):
            with repeating(repo, branch):
                refuse_incomplete(known_names(call, repo), app, env, version, typed_options(ctx))
        intents = [_intent(defaults, tag, digest, source, image or [], chart_version or [])]
    promotions = Promotions(
        intents,
        run,
        deadline=seconds("--timeout", timeout),
        repo=repo,
        branch=branch,
        gate=_gate(call, seconds("--soak", soak or "0s"), not dry_run) if require_healthy else None,
        proposing=Proposing(forge, merge_when_green) if pr else None,
        dry_run=dry_run,
    )
    with repeating(repo, branch):
        landing, warning = land_promotions(call, promotions)
    if warning:
        call.console.warn(warning)
    return show_landing(call, landing, output, repo, branch, batch=bool(batch))


def _intent(
    defaults: Intent,
    tag: str,
    digest: str,
    source: str,
    images: Sequence[str],
    charts: Sequence[str],
) -> Intent:
    check_name("app", defaults.app)
    check_name("environment", defaults.env)
    flags = {"--tag": tag, "--digest": digest, "--from": source, "--image": images}
    given = [flag for flag, value in {**flags, "--chart-version": charts}.items() if value]
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} are mutually exclusive",
            next="use one of --tag, --digest, --from, --image and --chart-version",
        )
    if source:
        check_name("environment", source)
    pin = parse_tag(tag) if tag else parse_digest(digest) if digest else NO_PIN
    return replace(
        defaults,
        pin=pin,
        source=source,
        images=_images(images),
        charts=_by_name("--chart-version", charts, parse_chart_version),
    )


def _images(words: Sequence[str]) -> dict[str, Pin]:
    return _by_name("--image", [_named_tag(word) for word in words], parse_version)


def _named_tag(word: str) -> str:
    """NAME=TAG, also for NAME:TAG and NAME@DIGEST, as builds print an image."""
    if word.rpartition("=")[0]:
        return word
    name, pin = split_reference(word) or ("", NO_PIN)
    if not pin:
        raise UsageError(f"--image {word!r} is not a valid NAME=TAG", next="--image NAME=TAG")
    return f"{name}={pin}"


def _by_name(flag: str, words: Sequence[str], parse: Callable[[str], Pin]) -> dict[str, Pin]:
    """Versions of `[NAME=]VERSION` by name. Raises UsageError for two of the same name."""
    found: dict[str, Pin] = {}
    for word in words:
        name, _, version = word.rpartition("=")
        if name in found:
            raise UsageError(
                f"{flag} is given twice{name and f' for {name}'}", next="give one version for each"
            )
        found[name] = parse(version)
    return found


def _order(sequence: int | None, semver: bool, run: Run) -> Order:
    if semver:
        if sequence is not None:
            raise UsageError(
                "--sequence and --semver are mutually exclusive", next="use only one of them"
            )
        return Order(semver=True)
    if sequence is not None:
        return Order(sequence=sequence)
    return Order(sequence=run.sequence, source=run.source)


def _gate(call: Invocation, soak: float, waits: bool) -> HealthGate:
    workspace, name = call.workspace, call.topology
    names = [name] if name else workspace.topologies()
    own = workspace.state(names[0]).kubeconfig(f"{names[0]}-core") if len(names) == 1 else None
    other = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    found = find_kubeconfig(
        {
            f"the workspace's {own or '.ucp/<topology>/kubeconfigs/<topology>-core.yaml'}": own,
            "a file in KUBECONFIG": Path(other) if other else None,
        }
    )
    return HealthGate(application_reader(found), soak=soak, waits=waits, report=call.console.say)


def _refuse(given: Mapping[str, object]) -> None:
    """Refuse arguments that a batch has to set in its file."""
    extra = [name for name, value in given.items() if value]
    if extra:
        raise UsageError(
            f"--batch and {', '.join(extra)} are mutually exclusive",
            next="set these in the batch file",
        )


def _read(path: str) -> str:
    import sys

    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return raw.decode("utf-8")
    except OSError as error:
        raise UsageError(
            f"failed to read {path}: {error.strerror}", next="--batch FILE, or --batch - for stdin"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not valid UTF-8", next="save it as UTF-8") from error
