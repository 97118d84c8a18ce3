"""Files that kustomizations load, including those outside of their own folder."""

from __future__ import annotations

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.reachable import (
    FolderTree,
    hidden_files_of_chart,
    moved_up,
    refuse_submodules,
    taken_in,
)

DEPLOYMENT = (
    b"kind: Deployment\nspec: {containers: [{image: 'reg/web:1'}, {image: 'reg/side:2'}]}\n"
)
TREE = {
    "base/kustomization.yml": b"resources: [web.yaml]\nimages: [{name: reg/side, newTag: '3'}]\n",
    "base/web.yaml": DEPLOYMENT,
    "overlays/prod/kustomization.yaml": (
        b"resources: [../../base]\ncomponents: [../../parts/tls]\n"
        b"images: [{name: reg/web, newName: far/web, newTag: '5'}]\n"
    ),
    "overlays/pinned/Kustomization": b"resources: [../../base]\n"
    b"images: [{name: reg/web, digest: 'sha256:1'}]\n",
    "parts/tls/kustomization.yaml": b"kind: Component\nconfigMapGenerator:\n"
    b"  - {name: x, files: [conf=../../files/tls.conf]}\n",
    "files/tls.conf": b"x",
    "unused/kustomization.yaml": b"",
}


def place(files: dict[str, bytes]) -> FolderTree:
    def names(folder: str) -> list[str]:
        return [each[len(folder) + 1 :] for each in files if each.startswith(f"{folder}/")]

    def hidden(folder: str) -> list[str]:
        return [each for each in names(folder) if any(p[:1] == "." for p in each.split("/"))]

    return FolderTree(names, files.get, hidden)


def test_all_files_that_a_kustomization_loads_are_included() -> None:
    files = taken_in(place(TREE), ["overlays/prod"])
    assert sorted(files) == [
        "base/kustomization.yml",
        "base/web.yaml",
        "files/tls.conf",
        "overlays/prod/kustomization.yaml",
        "parts/tls/kustomization.yaml",
    ]
    assert moved_up(files, "overlays/prod") == ("overlays/prod", files)
    assert moved_up(taken_in(place(TREE), ["base"]), "base") == (
        "",
        {
            "kustomization.yml": TREE["base/kustomization.yml"],
            "web.yaml": DEPLOYMENT,
        },
    )


def test_hidden_files_are_read_if_named_but_not_those_of_git() -> None:
    generated = b"configMapGenerator: [{name: x, files: [.env, .git/config, ../.hidden]}]\n"
    names = ("web/.env", "web/.git/config", ".hidden")
    files = {"web/kustomization.yaml": generated, **dict.fromkeys(names, b"x")}
    assert sorted(taken_in(place(files), ["web"])) == ["web/.env", "web/kustomization.yaml"]


def test_hidden_files_that_templates_of_a_chart_read_are_found() -> None:
    shown = {
        "templates/a.yaml": b'{{ .Files.Get ".env" }}{{ $.Files.Get "a.txt" }}'
        b'{{ .Files.Get "../.far" }}{{ .Files.Get ".git/config" }}{{ .Files.Get ".none" }}',
        "charts/part/templates/b.yaml": b"{{ range .Files.Lines `conf/.rc` }}{{ end }}",
        "values.yaml": b"a: '.Files.Get \".other\"'",
    }
    hidden = (".env", "charts/part/conf/.rc", ".git/config", ".other", "../.far")
    tree = place({f"web/{each}": b"x" for each in (*shown, *hidden)})
    assert sorted(hidden_files_of_chart(tree, "web", shown)) == [".env", "charts/part/conf/.rc"]


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("files/*", ["files/.a", "files/.b.sh"]),
        ("files/**", ["files/.a", "files/.b.sh", "files/in/.a"]),
        ("files/.{a,c}", ["files/.a"]),
        ("**/.?", ["charts/x/files/.c", "files/.a", "files/in/.a"]),
        ("*", []),
    ],
)
def test_hidden_files_that_templates_of_a_chart_find_are_found(glob: str, found: list[str]) -> None:
    shown = {"templates/a.yaml": f'{{{{ (.Files.Glob "{glob}").AsConfig }}}}'.encode()}
    hidden = ("files/.a", "files/.b.sh", "files/in/.a", "files/.DS_Store", "charts/x/files/.c")
    tree = place({f"web/{each}": b"x" for each in (*shown, *hidden, "files/.git/config")})
    assert sorted(hidden_files_of_chart(tree, "web", shown)) == found


def test_a_glob_with_many_stars_is_matched_in_time() -> None:
    """Charts of others may have one; as a regular expression it would take years."""
    shown = {"templates/a.yaml": f'{{{{ .Files.Glob "{"**f" * 40}g" }}}}'.encode()}
    tree = place({f"web/{each}": b"x" for each in (*shown, f".{'f' * 80}")})
    assert hidden_files_of_chart(tree, "web", shown) == {}


def test_templates_of_a_subchart_find_its_own_hidden_files() -> None:
    shown = {"charts/x/templates/a.yaml": b'{{ .Files.Glob "files/*" }}'}
    tree = place(dict.fromkeys(("web/files/.a", "web/charts/x/files/.c"), b"x"))
    assert sorted(hidden_files_of_chart(tree, "web", shown)) == ["charts/x/files/.c"]


def test_nothing_outside_of_the_tree_is_read() -> None:
    asked = []

    def read(path: str) -> bytes | None:
        asked.append(path)
        return (
            b"resources: [../../etc/passwd, /etc/passwd, https://x/y]" if path[0] == "k" else None
        )

    taken_in(FolderTree(lambda _: [], read), [""])
    assert not any(each.startswith(("/", "..")) for each in asked)


def test_what_a_submodule_lacks_is_refused_by_its_name() -> None:
    files = {
        ".gitmodules": b'[submodule "lib"]\n\tpath = vendor/lib\n\turl = ../lib\n',
        "web/kustomization.yaml": b"resources: [../vendor/lib/base]\n",
        "other/kustomization.yaml": b"resources: [../vendor/library]\n",
    }
    refuse_submodules(place(files), taken_in(place(files), ["other"]))
    with pytest.raises(UsageError, match=r"web lists .*, which is in the git submodule vendor/lib"):
        refuse_submodules(place(files), taken_in(place(files), ["web"]))
    files["vendor/lib/base/kustomization.yaml"] = b""
    refuse_submodules(place(files), taken_in(place(files), ["web"]))
