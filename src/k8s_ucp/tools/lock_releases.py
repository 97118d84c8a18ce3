"""Updates releases.lock.json with the published checksums of the catalogue's releases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.tools import download
from k8s_ucp.tools.catalogue import CATALOGUE, Tool
from k8s_ucp.tools.releases.locks import COMMITTED
from k8s_ucp.tools.releases.publishers import ALL, Asset, published_checksum


def renew(catalogue: Mapping[str, Tool] = CATALOGUE, path: Path = COMMITTED) -> str:
    """Write the hashes of every file for every platform; returns a summary.

    Locked hashes never change: raises UcpError if a publisher reports another one now, or if a
    server is unreachable. Then nothing is written.
    """
    locked: Mapping[str, str] = json.loads(path.read_text("utf-8"))
    assets = [
        asset
        for tool in catalogue.values()
        if tool.release
        for platform in ALL
        for asset in tool.release.on(tool.version, platform)
    ]
    texts = {
        url: download.fetch_text(url) for url in dict.fromkeys(each.checksums for each in assets)
    }
    published = {each.url: _published_sha256(each, texts[each.checksums]) for each in assets}
    changed = [url for url in published if locked.get(url, published[url]) != published[url]]
    if changed:
        raise UcpError(
            f"published checksums differ from the locked ones: {', '.join(changed)}",
            next="find out why: a published release must not change",
        )
    path.write_text(json.dumps(published, indent=1, sort_keys=True) + "\n", "utf-8")
    return f"{len(published)} files are locked, {len(published.keys() - locked.keys())} of them new"


def _published_sha256(asset: Asset, text: str) -> str:
    found = published_checksum(text, asset.file)
    if found is None:
        raise UcpError(f"{asset.checksums} has no sha256 of {asset.file}")
    return found
