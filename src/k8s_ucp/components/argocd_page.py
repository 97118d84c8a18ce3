"""The page that a build of Argo CD from source serves in place of the web UI."""

from __future__ import annotations

import html
import shlex
from pathlib import Path

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{topology}: Argo CD without its web UI</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 46rem; margin: 0 auto; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 1.5rem; }}
h2 {{ font-size: 1.15rem; margin: 1.5rem 0 .3rem; }}
p {{ margin: .3rem 0; }}
pre {{ margin: .3rem 0; padding: .6rem .8rem; border: 1px solid #7a8794; border-radius: .3rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }}
</style>
</head>
<body>
<main>
<h1>Argo CD of topology {topology}: API only</h1>
<p>This Argo CD was built from source by k8s-ucp. The source has no built web UI,
so this page takes its place; everything else works.</p>
<h2>See and promote apps</h2>
<p>The board shows every app in every environment. In <code>{workspace}</code>:</p>
<pre>ucp board</pre>
<h2>Command line and API</h2>
<p>The API is at this address. <code>ucp get secrets</code> prints the password:</p>
<pre>{argocd} login {address} --plaintext --username admin
{argocd} app list</pre>
<h2>Get Argo CD's own web UI</h2>
<p>It is part of Argo CD's release, which is downloaded from its publisher:</p>
<pre>ucp tools install argocd --source releases
ucp start</pre>
<p>Where <code>ucp.yaml</code> has <code>tools: {{source: sources}}</code>, take that line
out first.</p>
</main>
</body>
</html>
"""


def page(topology: str, workspace: Path, argocd: Path, address: str) -> str:
    """argocd: path of the program, which is also the CLI. address: of Argo CD's server."""
    return _PAGE.format(
        topology=html.escape(topology),
        workspace=html.escape(str(workspace)),
        argocd=html.escape(shlex.quote(str(argocd))),
        address=html.escape(address),
    )
