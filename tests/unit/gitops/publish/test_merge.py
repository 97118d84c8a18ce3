"""Three-way merge of a render into a repository, decided without git."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from k8s_ucp.git.objects import blob_id
from k8s_ucp.gitops.manifests.image_edit import Pin, read_images
from k8s_ucp.gitops.publish.merge import Choices, MergeConflict, Merged, Scope, merge, with_tags

KNOWN = Scope(frozenset({"stage", "prod"}), frozenset({"echo"}))
OVERLAY = "apps/echo/overlays/stage/kustomization.yaml"


def never(base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
    """A text merge in which everything conflicts."""
    return b"<<<<<<< repository\n" + ours + b"=======\n" + theirs + b">>>>>>> new render\n", False


def three(
    base: Mapping[str, bytes],
    ours: Mapping[str, bytes],
    theirs: Mapping[str, bytes],
    choices: Choices | None = None,
    known: Scope = KNOWN,
) -> Merged:
    store = {blob_id(text): text for side in (base, ours) for text in side.values()}

    def contents(ids: Iterable[str]) -> dict[str, bytes]:
        return {id: store[id] for id in ids}

    return merge(
        {path: blob_id(text) for path, text in base.items()},
        {path: blob_id(text) for path, text in ours.items()},
        theirs,
        scope=known,
        contents=contents,
        merge_text=never,
        choices=choices,
    )


A, B, C = b"a\n", b"b\n", b"c\n"


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "changes"),
    [
        ({}, {}, {"f": A}, {"f": A}),
        ({"f": A}, {"f": A}, {"f": A}, {}),
        ({"f": A}, {"f": A}, {"f": B}, {"f": B}),
        ({"f": A}, {"f": B}, {"f": A}, {}),
        ({"f": A}, {"f": B}, {"f": B}, {}),
        ({"f": A}, {"f": A}, {}, {"f": None}),
        ({"f": A}, {}, {}, {}),
        ({"f": A}, {}, {"f": A}, {}),
        ({"f": A}, {}, {"f": B}, {}),
        ({}, {"f": A}, {"f": A}, {}),
        ({}, {"mine": A}, {"f": B}, {"f": B}),
        ({}, {"README.md": A}, {"README.md": B}, {}),
        ({"README.md": A}, {"README.md": B}, {"README.md": C}, {}),
        ({}, {OVERLAY: A}, {OVERLAY: B}, {}),
    ],
)
def test_changes_on_one_side_are_merged_without_a_conflict(
    base: dict[str, bytes],
    ours: dict[str, bytes],
    theirs: dict[str, bytes],
    changes: dict[str, bytes | None],
) -> None:
    assert three(base, ours, theirs) == Merged(changes)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "taken"),
    [
        ({"f": A}, {"f": B}, {"f": C}, C),
        ({"f": A}, {"f": B}, {}, None),
        ({}, {"f": A}, {"f": B}, B),
    ],
)
def test_a_conflict_is_resolved_by_the_chosen_side(
    base: dict[str, bytes], ours: dict[str, bytes], theirs: dict[str, bytes], taken: bytes | None
) -> None:
    conflicts = three(base, ours, theirs)
    assert [each.path for each in conflicts.conflicts] == ["f"]
    assert conflicts.changes == {}
    assert three(base, ours, theirs, Choices(ours=frozenset({"f"}))) == Merged()
    assert three(base, ours, theirs, Choices(theirs=frozenset({"f"}))) == Merged({"f": taken})


@pytest.mark.parametrize(
    "path",
    [
        "clusters/overlays/eu/kustomization.yaml",
        "apps/echo/overlays/eu/hosts.yaml",
        "apps/quote/base/service.yaml",
        "apps/quote/overlays/stage/kustomization.yaml",
    ],
)
def test_files_of_unknown_environments_and_apps_are_not_deleted(path: str) -> None:
    assert three({path: A}, {path: A}, {}) == Merged()


def test_a_file_in_place_of_a_folder_is_a_conflict() -> None:
    assert three({}, {"a": A}, {"a/b": B}).conflicts[0].path == "a/b"
    assert three({}, {"a/b": A}, {"a": B}).conflicts[0].path == "a"


def overlay(tag: str, image: str = "ealen/echo-server", count: int = 1) -> bytes:
    return (
        f"images:\n  # note\n  - name: {image}\n    newTag: {tag}\n\nreplicas:\n"
        f"  - name: echo\n    count: {count}\n"
    ).encode()


def test_a_render_never_changes_a_tag() -> None:
    assert three({OVERLAY: overlay("1")}, {OVERLAY: overlay("1")}, {OVERLAY: overlay("2")}) == (
        Merged()
    )
    assert three({OVERLAY: overlay("1")}, {OVERLAY: overlay("7")}, {OVERLAY: overlay("2")}) == (
        Merged()
    )
    assert three(
        {OVERLAY: overlay("1")},
        {OVERLAY: overlay("7")},
        {OVERLAY: overlay("2", count=3)},
        Choices(theirs=frozenset({OVERLAY})),
    ) == Merged({OVERLAY: overlay("7", count=3)})


DIGEST = f"sha256:{'d' * 64}"


@pytest.mark.parametrize(
    ("ours", "pin"),
    [
        (f"- name: ealen/echo-server\n  digest: {DIGEST}", Pin(digest=DIGEST)),
        (f"- name: ealen/echo-server\n  newTag: '7'\n  digest: {DIGEST}", Pin("7", DIGEST)),
        ('- name: "ealen/echo-server"\n  newTag: "7"', Pin("7")),
        ("- newTag: v7\n  name: 'ealen/echo-server'", Pin("v7")),
        ("- {name: ealen/echo-server, newTag: v7}", Pin("v7")),
        ("  - name:  ealen/echo-server\n    newName: mine/echo\n    newTag: v7", Pin("v7")),
    ],
)
def test_taking_the_renders_side_keeps_promoted_versions(ours: str, pin: Pin) -> None:
    """In every notation that a person or a promotion may have written."""
    taken = three(
        {OVERLAY: overlay("1")},
        {OVERLAY: f"images:\n{ours}\n".encode()},
        {OVERLAY: overlay("2", count=3)},
        Choices(theirs=frozenset({OVERLAY})),
    ).changes[OVERLAY]
    assert taken is not None
    assert [each.pin for each in read_images(taken.decode(), OVERLAY)] == [pin]
    assert b"count: 3" in taken


def test_an_unreadable_file_is_replaced_by_the_render() -> None:
    for ours in (b"images: [\n", b"\xff", b"replicas: []\n"):
        found = three(
            {OVERLAY: overlay("1")},
            {OVERLAY: ours},
            {OVERLAY: overlay("2")},
            Choices(theirs=frozenset({OVERLAY})),
        )
        assert found == Merged({OVERLAY: overlay("2")})


def test_a_different_image_gets_its_own_tag() -> None:
    text = overlay("9", image="other")
    assert with_tags(text, overlay("1")) == text


def test_an_image_newly_found_in_an_edited_base_is_not_listed() -> None:
    version, overlay = "apps/echo/base/envs/stage/version.yml", b"resources: [../../base]\n"
    listed = overlay + b"images:\n  - name: echo\n    newTag: '2'\n"
    base, theirs = {OVERLAY: overlay, version: A}, {OVERLAY: listed, version: A}
    assert three(base, base, theirs).changes == {OVERLAY: listed}
    edited = {**base, version: B}
    assert three(base, edited, theirs) == Merged()
    # An image that comes with new files is listed, as is one of another app.
    new = {**theirs, "apps/echo/base/more.yml": A}
    assert three(base, edited, new).changes == {OVERLAY: listed, "apps/echo/base/more.yml": A}
    other = {**base, "apps/web/base/version.yml": A}
    edited = {**other, "apps/web/base/version.yml": B}
    assert three(other, edited, {**other, **theirs}).changes == {OVERLAY: listed}
    # Other changes of the overlay are merged.
    changed = listed + b"namePrefix: a-\n"
    result = three(base, {**base, version: B}, {**theirs, OVERLAY: changed})
    assert result.changes == {OVERLAY: changed}


def test_a_conflict_shows_the_differing_lines() -> None:
    found = three({"f": A}, {"f": B}, {"f": C}).conflicts
    error = MergeConflict({"apps": found})
    assert "apps: f" in error.message
    assert "\n  b" in error.message
    assert "\n  c" in error.message
    assert "ucp start --ours apps:f, or" in (error.next or "")
    assert "ucp start --theirs apps:f" in (error.next or "")
    long = three({"f": A}, {"f": b"x\n" * 500}, {"f": C}).conflicts[0].text
    assert "more lines" in long
    assert len(long.splitlines()) < 50


def test_a_conflict_with_an_edit_is_resolved_before_the_edit() -> None:
    """`ucp start` renders ucp.yaml without the edit: a file of the edit alone is none of its."""
    edited, added = three({"f g": A}, {"f g": B}, {"f g": C}), three({}, {"n": A}, {"n": B})
    both = MergeConflict({"core": edited.conflicts, "apps": added.conflicts}, edit=True)
    assert both.next == (
        "move or delete by a commit: apps:n; replace the repository's edit with the last render: "
        "ucp start --theirs 'core:f g'"
    )


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "changes"),
    [
        ({"f": A}, {"f": B}, {"f": A}, {"f": A}),
        ({"f": A}, {}, {"f": A}, {"f": A}),
        ({"f": A}, {"f": A}, {"f": A}, {}),
        ({}, {"f": A}, {}, {}),
    ],
)
def test_the_render_can_be_chosen_without_a_conflict(
    base: dict[str, bytes],
    ours: dict[str, bytes],
    theirs: dict[str, bytes],
    changes: dict[str, bytes | None],
) -> None:
    assert three(base, ours, theirs, Choices(theirs=frozenset({"f"}))) == Merged(changes)


def _chart(environment: str, version: str, **files: bytes) -> dict[str, bytes]:
    folder = f"apps/web/overlays/{environment}/"
    found = {"Chart.yaml": f"name: web\nversion: {version}\n".encode(), **files}
    return {f"{folder}{path}": text for path, text in found.items()}


def test_a_promoted_chart_keeps_its_version_if_the_topology_raises_it() -> None:
    """Elsewhere the topology's version is rendered. Files of two versions are never mixed."""
    base = _chart("stage", "1.0.0", a=A, old=A) | _chart("prod", "1.0.0", a=A, old=A)
    ours = _chart("stage", "1.2.0", a=A, old=A, more=B) | _chart("prod", "1.0.0", a=A, old=A)
    theirs = _chart("stage", "1.3.0", a=C, new=C) | _chart("prod", "1.3.0", a=C, new=C)
    own = "apps/web/overlays/stage/values-stage.yaml"
    base[own], ours[own], theirs[own] = A, A, B
    known = Scope(KNOWN.environments, frozenset({"web"}))
    merged = three(base, ours, theirs, known=known)
    prod = _chart("prod", "1.3.0", a=C, new=C) | {"apps/web/overlays/prod/old": None}
    assert merged.changes == {**prod, own: B}
    assert not merged.conflicts
    [note] = merged.notes
    assert "web on stage keeps version 1.2.0" in note
    assert note.endswith("ucp promote web --env stage --chart-version 1.3.0")
    # The note is given once: the next render is based on that version.
    again = three(theirs, {**ours, **prod_of(theirs)}, theirs, known=known)
    assert (again.changes, again.notes) == ({}, ())


def prod_of(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path: text for path, text in files.items() if "/prod/" in path}
