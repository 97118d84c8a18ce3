"""Images of a chart whose version `ucp promote` does not find, as helm renders them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from k8s_ucp.gitops.promotion.targets.find import find_targets
from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder
from k8s_ucp.gitops.promotion.targets.helm import read_values
from k8s_ucp.gitops.promotion.targets.probe import probe, proposed, unlisted
from tests.unit.gitops.promotion.tips import tip

FOLDER = "apps/web/overlays/stage"
VALUES = """\
image: {tag: 1.0.0}
market: {image: {repository: library/web, tag: latest}}
side: {image: {repository: example.org/side, tag: 1.0.0}}
"""


def rendered(values: Mapping[str, Any]) -> list[str]:
    """The images of a chart that composes the name of the first one in a template.

    It refuses the next major version, as some charts do.
    """
    assert values["image"]["tag"].startswith("1.")
    return [
        f"docker.io/web:{values['image']['tag']}",
        f"example.org/side:{values['side']['image']['tag']}",
    ]


DIGEST = "sha256:" + 32 * "ab"


def test_the_digest_of_a_chart_without_tags_is_a_version() -> None:
    files = {
        "Chart.yaml": "name: web\nversion: 1.0.0\n",
        "values.yaml": f"image: {{repository: example.org/web, digest: '{DIGEST}'}}\n",
    }
    folder = EnvironmentFolder(
        tip({f"{FOLDER}/{name}": text for name, text in files.items()}), FOLDER
    )
    found = find_targets(folder, "stage")
    assert found
    targets = [each for each in found.targets if each.kind == "image"]
    values, now = read_values(folder, "stage"), [f"example.org/web@{DIGEST}"]
    tried = probe(values, targets, now)
    after = [f"example.org/web@{tried.values['image']['digest']}"]
    assert after != now
    assert unlisted(tried, targets, values, now, after) == []


def test_an_image_whose_name_another_value_has_is_to_be_named() -> None:
    files = {"Chart.yaml": "name: web\nversion: 1.0.0\n", "values.yaml": VALUES}
    folder = EnvironmentFolder(
        tip({f"{FOLDER}/{name}": text for name, text in files.items()}), FOLDER
    )
    found = find_targets(folder, "stage")
    assert found
    targets = [each for each in found.targets if each.kind == "image"]
    values = read_values(folder, "stage")
    now = rendered({"image": {"tag": "1.0.0"}, "side": {"image": {"tag": "1.0.0"}}})
    tried = probe(values, targets, now)
    after = rendered(tried.values)
    [left] = unlisted(tried, targets, values, now, after)
    assert (left.image, left.path) == ("docker.io/web", ("image", "tag"))
    assert "{image: docker.io/web, path: image.tag}" in proposed(tried, after)


def test_a_tag_that_the_values_lack_is_found() -> None:
    files = {
        "Chart.yaml": "name: web\nversion: 1.0.0\nappVersion: 3.4.2\n",
        "values.yaml": "web: {image: {repository: example.org/web, pullPolicy: Always}}\n",
    }
    folder = EnvironmentFolder(
        tip({f"{FOLDER}/{name}": text for name, text in files.items()}), FOLDER
    )
    values, now = read_values(folder, "stage"), ["example.org/web:3.4.2"]
    tried = probe(values, [], now)
    after = [f"example.org/web:{tried.values['web']['image']['tag']}"]
    [left] = unlisted(tried, [], values, now, after)
    assert left.path == ("web", "image", "tag")
    assert proposed(tried, after) == ["{image: example.org/web, path: web.image.tag}"]
