"""The Postgres behind an RDS instance: its version, its name, and how its password is stored."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from k8s_ucp.components.databases import choose, server_name
from k8s_ucp.components.host.postgres import PostgresPrograms, PostgresRecord, verifier

INSTALLED = [PostgresPrograms(Path(f"/pg/{major}"), major) for major in ("15", "17", "16")]


@pytest.mark.parametrize(
    ("asked", "major"), [("16", "16"), ("17.2", "17"), ("9.6", "15"), ("", "15")]
)
def test_the_requested_major_version_is_chosen_or_else_the_first(asked: str, major: str) -> None:
    found = choose(INSTALLED, asked)

    assert found and found.major == major
    assert choose([], asked) is None


def test_instances_of_the_same_name_in_two_regions_have_different_servers() -> None:
    names = {server_name(region, "Demo_" + "x" * 90) for region in ("eu-west-3", "us-east-1")}

    assert len(names) == 2
    assert all(re.fullmatch(r"rds-demo-[-a-z0-9]{1,55}", each) for each in names)


def test_a_password_is_stored_as_the_scram_verifier_of_rfc_7677() -> None:
    """The example of RFC 7677, in the format in which Postgres stores verifiers."""
    kept = verifier("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))

    assert kept == (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
        ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )


def test_a_server_accepts_only_its_own_password() -> None:
    record = PostgresRecord(5432, "quotes", verifier("one"))

    assert record.opens_with("one")
    assert not record.opens_with("two")
    assert verifier("one") != verifier("one")
