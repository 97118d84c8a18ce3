"""`ucp completion`: the completion script of a shell."""

from __future__ import annotations

from contextlib import redirect_stdout
from enum import StrEnum
from io import StringIO
from typing import Annotated

import typer
from typer.completion import shell_complete

from k8s_ucp.cli.command import declare, examples, invocation

app = declare()


class Shell(StrEnum):
    """The shells that typer has a script for."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"
    powershell = "powershell"


@app.command(
    epilog=examples(
        "source <(ucp completion bash)     # in ~/.bashrc",
        "source <(ucp completion zsh)      # in ~/.zshrc, after compinit",
        "ucp completion fish | source      # in ~/.config/fish/config.fish",
    )
)
def completion(
    ctx: typer.Context,
    shell: Annotated[Shell, typer.Argument(help="bash, zsh, fish or powershell.", metavar="SHELL")],
) -> None:
    """Print the completion script of a shell.

    It completes commands and options, and names of apps, environments and clusters.
    `ucp --install-completion` adds it to the settings of the current shell.
    """
    command, script = ctx.find_root().command, StringIO()
    with redirect_stdout(script):
        shell_complete(command, {}, "ucp", "_UCP_COMPLETE", f"source_{shell}")
    # zsh's `#compdef` must be in the first line, which typer leaves empty.
    invocation(ctx).console.data(script.getvalue().strip())
