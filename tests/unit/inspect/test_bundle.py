"""The support bundle of `ucp doctor --bundle` contains no secret, in any format or file."""

from __future__ import annotations

import base64
import json
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.inspect.bundle import MISSING, Bundle, outline
from k8s_ucp.inspect.events import event_line
from k8s_ucp.redaction import Redaction, secret_values

CANARY = "canary-Xk29-sings"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("anything", CANARY),
        ("text", f"first line\n  {CANARY}\nlast line"),
        ("kubeconfig", f"users:\n  - name: me\n    user: {{token: {CANARY}}}"),
        ("config", json.dumps({"bearerToken": CANARY, "tlsClientConfig": {"caData": "x"}})),
        ("broken", f"a: [{CANARY}"),
        ("large", f"{CANARY}\n" + "a: b\n" * 20_000),
        ("deep", f"a: {'[' * 1000}{CANARY}"),
    ],
)
def test_every_value_of_a_secret_is_redacted(name: str, content: str) -> None:
    redaction = Redaction(secret_values({name: encoded(content)}))
    assert CANARY not in redaction.text(f"error: dial with {CANARY}: refused")
    assert encoded(CANARY) not in redaction.text(f"data: {encoded(CANARY)}")
    assert redaction.data({"a": [f"<{CANARY}>", 1, None]}) == {"a": ["<…>", 1, None]}


def test_a_secret_of_deeply_nested_documents_takes_little_time() -> None:
    """The reconciler redacts what a cluster says of a Secret, which a team may have written."""
    data = {f"key-{number}": encoded("a: " + "[" * 1000) for number in range(300)}
    began = time.process_time()
    assert len(set(secret_values(data))) > 0
    assert time.process_time() - began < 10


def test_values_that_an_object_names_as_secret_are_redacted() -> None:
    """An Application may have passwords in its values."""
    parameters = [{"name": "db.password", "value": "kiwi two"}, {"name": "replicas", "value": "2"}]
    values = {"adminPassword": "kiwi", "apiKey": 4711, "secretName": "a", "automountToken": False}
    helm = {"parameters": parameters, "valuesObject": values}
    assert Redaction().data({"spec": {"source": {"helm": helm}}}) == {
        "spec": {
            "source": {
                "helm": {
                    "parameters": [{"name": "db.password", "value": "…"}, parameters[1]],
                    "valuesObject": {**values, "adminPassword": "…", "apiKey": "…"},
                }
            }
        }
    }


def test_short_passwords_are_redacted_and_other_short_values_are_not() -> None:
    data = {"password": encoded("kiwi"), "number": encoded("4711"), "pin-token": encoded("12345")}
    found = Redaction(secret_values(data)).text("kiwi 4711 12345")
    assert found == "… 4711 …"


def test_names_and_addresses_are_not_redacted() -> None:
    data = {"name": "demo-stage", "server": "https://127.0.0.1:6443", "namespaces": "echo,quote"}
    redaction = Redaction(secret_values({name: encoded(text) for name, text in data.items()}))
    text = "demo-stage at https://127.0.0.1:6443 in echo,quote"
    assert redaction.text(text) == text


def test_binary_values_are_redacted_in_their_base64_form() -> None:
    raw = base64.b64encode(bytes(range(128, 160))).decode()
    assert raw not in Redaction(secret_values({"blob": raw})).text(f"<{raw}>")


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=8, max_size=60))
def test_any_secret_value_is_redacted(value: str) -> None:
    text = Redaction(secret_values({"password": encoded(value)})).text(f"a {value} b")
    assert value not in text or value.strip("… ") == ""


def test_the_archive_is_private_and_lists_what_could_not_be_collected(tmp_path: Path) -> None:
    def fails() -> None:
        raise UcpError(f"no answer to {CANARY}")

    bundle = Bundle("ucp-demo", Redaction([CANARY]))
    bundle.text("logs/one.log", f"line {CANARY}")
    bundle.data("status.json", {"message": CANARY})
    bundle.attempt("events", fails)
    file = tmp_path / "bundle.tar.gz"
    bundle.write(file)
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        texts = {each.name: archive.extractfile(each).read().decode() for each in archive}  # type: ignore[union-attr]
    assert texts == {
        "ucp-demo/logs/one.log": "line …",
        "ucp-demo/status.json": '{\n "message": "…"\n}',
        f"ucp-demo/{MISSING}": "events: no answer to …",
    }
    with pytest.raises(UsageError, match="already exists"):
        bundle.write(file)


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UcpError, match="failed to write"):
        Bundle("x", Redaction()).write(tmp_path / "missing" / "file.tar.gz")


def test_the_outline_of_an_object_contains_no_data() -> None:
    secret = {
        "metadata": {
            "name": "cluster-demo",
            "labels": {"a": "b"},
            "annotations": {
                "k8s-ucp.io/source": "x/y",
                "kubectl.kubernetes.io/last-applied-configuration": CANARY,
            },
            "managedFields": [CANARY],
        },
        "data": {"config": CANARY},
    }
    assert outline(secret) == {
        "name": "cluster-demo",
        "labels": {"a": "b"},
        "annotations": {"k8s-ucp.io/source": "x/y"},
    }


def test_an_event_is_summarized_in_one_line() -> None:
    event = {
        "involvedObject": {"kind": "Pod", "namespace": "a", "name": "b"},
        "reason": "Failed",
        "message": "no",
        "type": "Warning",
        "eventTime": "2026-01-01T00:00:00Z",
    }
    assert event_line(event) == {
        "last": "2026-01-01T00:00:00Z",
        "count": 1,
        "type": "Warning",
        "about": "Pod a/b",
        "reason": "Failed",
        "message": "no",
    }
