"""Sources that `ucp app add NAME SOURCE` accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.cli import main
from k8s_ucp.cli.editing.adding.app_source import flags_of, with_source, with_split_image
from k8s_ucp.errors import UsageError


@pytest.mark.parametrize(
    ("source", "flags"),
    [
        ("nginx:1.27", {"image": "nginx", "tag": "1.27"}),
        ("ghcr.io/a/b:v1", {"image": "ghcr.io/a/b", "tag": "v1"}),
        ("localhost:5000/a:1", {"image": "localhost:5000/a", "tag": "1"}),
        ("oci://ghcr.io/a/charts/b", {"chart": "oci://ghcr.io/a/charts/b"}),
        ("oci://host:5000/b:1.2.3", {"chart": "oci://host:5000/b", "version": "1.2.3"}),
        ("https://git.example/a/b.git", {"repo": "https://git.example/a/b.git"}),
        ("git@git.example:a/b.git", {"repo": "git@git.example:a/b.git"}),
        ("file:///srv/git/b", {"repo": "file:///srv/git/b"}),
        (
            "https://github.com/a/b/tree/v1/deploy/k8s",
            {"repo": "https://github.com/a/b", "revision": "v1", "path": "deploy/k8s"},
        ),
        (
            "https://gitlab.com/a/b/-/tree/main/k8s/",
            {"repo": "https://gitlab.com/a/b", "revision": "main", "path": "k8s"},
        ),
        (
            "https://gitlab.com/group/sub/proj/-/tree/main/deploy",
            {"repo": "https://gitlab.com/group/sub/proj", "revision": "main", "path": "deploy"},
        ),
        (
            "https://gitlab.com/group/sub/proj/-/blob/main/web.yaml",
            {"repo": "https://gitlab.com/group/sub/proj", "revision": "main", "path": "web.yaml"},
        ),
        (
            "https://github.com/o/r/tree/main",
            {"repo": "https://github.com/o/r", "revision": "main"},
        ),
        (
            "https://gitlab.com/group/sub/proj/-/tree/main/",
            {"repo": "https://gitlab.com/group/sub/proj", "revision": "main"},
        ),
        (
            "https://github.com/a/b/blob/v1/deploy/web.yaml",
            {"repo": "https://github.com/a/b", "revision": "v1", "path": "deploy/web.yaml"},
        ),
        (
            "https://gitlab.com/a/b/-/blob/main/k8s/Chart.yaml?ref_type=heads",
            {"repo": "https://gitlab.com/a/b", "revision": "main", "path": "k8s"},
        ),
        (
            "https://raw.githubusercontent.com/a/b/refs/heads/main/web.yaml",
            {"repo": "https://github.com/a/b", "revision": "main", "path": "web.yaml"},
        ),
        (
            "https://raw.githubusercontent.com/a/b/v1/kustomization.yaml",
            {"repo": "https://github.com/a/b", "revision": "v1", "path": "."},
        ),
        (
            "https://github.com/a/b//deploy?ref=v1",
            {"repo": "https://github.com/a/b", "path": "deploy", "revision": "v1"},
        ),
        (
            "ssh://git@host/a/b.git?ref=v2",
            {"repo": "ssh://git@host/a/b.git", "revision": "v2"},
        ),
    ],
)
def test_a_source_is_parsed_into_flags(source: str, flags: dict[str, str]) -> None:
    assert flags_of("shop", source) == flags


def test_an_existing_folder_takes_precedence_over_an_image_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop:1").mkdir()
    assert flags_of("shop", "shop:1") == {"path": "shop:1"}


@pytest.mark.parametrize("source", ["nginx", "./away", "/no/such:folder", "~/no:1"])
def test_an_unrecognized_source_is_refused(source: str) -> None:
    with pytest.raises(UsageError) as refused:
        flags_of("shop", source)
    assert source in refused.value.message
    assert "ucp app add shop" in str(refused.value.next)


def test_the_missing_tag_of_an_image_is_named() -> None:
    for image in ("nginx", "ghcr.io/shop/web", "localhost:5000/web"):
        with pytest.raises(UsageError, match="an image needs a tag") as refused:
            flags_of("shop", image)
        assert f"ucp app add shop {image}:TAG" in str(refused.value.next)


def test_a_file_is_a_source_and_a_chart_or_kustomization_file_selects_its_folder(
    tmp_path: Path,
) -> None:
    for name in ("web.yaml", "Chart.yaml", "kustomization.yml"):
        (tmp_path / name).touch()
    web = str(tmp_path / "web.yaml")
    assert flags_of("shop", web) == {"path": web}
    for name in ("Chart.yaml", "kustomization.yml"):
        assert flags_of("shop", str(tmp_path / name)) == {"path": str(tmp_path)}


def test_a_web_url_of_a_manifest_is_refused_with_a_download_command() -> None:
    with pytest.raises(UsageError) as refused:
        flags_of("shop", "https://shop.example/v1/install.yaml")
    assert "curl -fLO https://shop.example/v1/install.yaml &&" in str(refused.value.next)
    assert str(refused.value.next).endswith("ucp app add shop install.yaml")


def test_flags_complete_a_source_and_contradictory_ones_are_refused() -> None:
    nothing = dict.fromkeys(("image", "path", "repo", "revision", "chart", "version"))
    charts = "https://charts.example"
    assert with_source("shop", charts, {**nothing, "chart": "shop", "version": "1"}) == {
        **nothing,
        "repo": charts,
        "chart": "shop",
        "version": "1",
    }
    for source, flag in (("a:1", "tag"), ("a:1", "path"), (charts, "image"), ("oci://a/b", "repo")):
        with pytest.raises(UsageError, match=f"--{flag}"):
            with_source("shop", source, {**nothing, flag: "x"})
    named = "https://github.com/a/b//deploy?ref=v1"
    with pytest.raises(UsageError, match="--revision"):
        with_source("shop", named, {**nothing, "revision": "v2"})


def test_a_folder_with_a_path_below_it_is_refused_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    for path, advice in (
        ("deploy", f"ucp app add shop {tmp_path}/deploy"),
        ("none", f"leave out --path, or {tmp_path}"),
    ):
        with pytest.raises(UsageError, match=f"--path {path}") as refused:
            with_source("shop", str(tmp_path), {"path": path})
        assert refused.value.next == advice


def test_a_provider_without_a_database_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["app", "add", "web", "web:1", "--database-provider", "aws"]
    assert main.run([*line, "--workspace", str(tmp_path)]) == 2
    assert "--database-provider needs --database" in capsys.readouterr().err


def test_a_credential_for_a_source_that_is_not_fetched_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["app", "add", "web", "web:1", "--auth", "registry"]
    assert main.run([*line, "--workspace", str(tmp_path)]) == 2
    assert "--auth registry is only for a git repository or a chart" in capsys.readouterr().err


def test_the_tag_of_an_image_may_follow_its_name() -> None:
    def split(image: str, tag: str | None = None) -> dict[str, str | None]:
        return with_split_image("web", {"image": image, "tag": tag})

    assert split("nginx:1.25") == {"image": "nginx", "tag": "1.25"}
    assert split("host:5000/a/b:2") == {"image": "host:5000/a/b", "tag": "2"}
    assert split("nginx", "1.25") == {"image": "nginx", "tag": "1.25"}
    with pytest.raises(UsageError, match="is not specified") as missing:
        split("nginx")
    assert missing.value.next == "ucp app add web --image nginx --tag TAG"
    with pytest.raises(UsageError, match="contradict"):
        split("nginx:1.25", "1.26")
