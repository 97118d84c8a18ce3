"""The quote app without its pods: runs on this machine what its manifests have the pods do.

Its Secret `database` must exist; the programs are those of this machine's Postgres.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from k8s_ucp import yaml_io
from k8s_ucp.gitops.render.repositories import templates_folder
from tests.postgres_client import run_psql

SHIPPED = templates_folder() / "shipped" / "quote"
AUTHORS = ["Edsger W. Dijkstra", "Grace Hopper", "Gordon Bell"]
"""Authors of the quotes that the app inserts."""


def authors(secret: Mapping[str, str]) -> list[str]:
    """Insert the initial quotes as its init container does, and read all as its backend does.

    secret: decoded. Returns the authors. Raises ConnectionError.
    """
    spec = _deployment("quote-backend")["spec"]["template"]["spec"]
    (prepare,), (backend,) = spec["initContainers"], spec["containers"]
    program, *words = prepare["command"]
    assert program == "psql"
    (mount,) = prepare["volumeMounts"]
    files = [each.replace(mount["mountPath"], str(SHIPPED / "sql")) for each in words]
    run_psql(_environment(prepare, secret), *files)
    given = _environment(backend, secret)
    role, schema = given["PGRST_DB_ANON_ROLE"], given["PGRST_DB_SCHEMAS"]
    sql = f"set role {role}; select author from {schema}.quote order by id"
    return run_psql(given, "--no-psqlrc", "--quiet", "-At", "-c", sql).splitlines()


def _deployment(name: str) -> Any:
    found = yaml_io.load_all((SHIPPED / "backend.yaml").read_text("utf-8"))
    return next(each for each in found if each["metadata"]["name"] == name)


def _environment(container: Mapping[str, Any], secret: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for each in container["env"]:
        ref = each.get("valueFrom", {}).get("secretKeyRef")
        assert ref is None or ref["name"] == "database"
        found[each["name"]] = secret[ref["key"]] if ref else each["value"]
    return found
