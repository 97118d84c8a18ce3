"""Writes git hooks into the local remotes; a person's own hook is never replaced."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.errors import UcpError


def write_hook(bare: Path, name: str, text: str, *, mark: str) -> bool:
    """Write a hook where it is missing or old; mark: the line that says that it is ours.

    Returns False where a hook of somebody else's is in its place. Raises UcpError.
    """
    hook = bare / "hooks" / name
    try:
        there = hook.read_text("utf-8") if hook.exists() else ""
        if there == text:
            return True
        if there and mark not in there:
            return False
        hook.parent.mkdir(exist_ok=True)
        temporary = hook.with_name(f".{name}.new")
        temporary.write_text(text, "utf-8")
        temporary.chmod(0o755)
        temporary.replace(hook)
    except OSError as error:
        raise UcpError(f"failed to write the git hook {hook}: {error.strerror}") from error
    return True
