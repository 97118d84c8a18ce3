"""`ucp version`: the version of ucp, also for programs."""

from __future__ import annotations

import typer

from k8s_ucp import __version__
from k8s_ucp.cli.command import VERSION, Output, OutputOption, declare, invocation, notation

app = declare()


@app.command()
def version(ctx: typer.Context, output: OutputOption = Output.table) -> None:
    """Print the version of ucp, as `ucp --version` does.

    `ucp tools list` lists the programs that it installs, `ucp status` the versions that run.
    """
    data = {"version": __version__}
    text = VERSION if output is Output.table else notation(data, output)
    invocation(ctx).console.data(text)
