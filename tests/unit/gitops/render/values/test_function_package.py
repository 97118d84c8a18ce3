"""ucp's composition function as a package that Crossplane loads only from its cache."""

from __future__ import annotations

import base64
import gzip
import hashlib
from dataclasses import replace

from k8s_ucp import yaml_io
from k8s_ucp.compositions import patch_and_transform
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.gitops.render.values import function_package as package
from tests.unit.gitops.topologies import FACTS, on_clouds

IMAGE = "docker.io/k8s-ucp/reconciler:1-abc"


def test_the_package_matches_the_digest_of_its_reference() -> None:
    (text,) = yaml_io.load(package.config_map("crossplane-system"))["binaryData"].values()
    content = gzip.decompress(base64.b64decode(text))
    _, _, digest = package.REFERENCE.partition("@sha256:")
    assert digest == hashlib.sha256(content).hexdigest()
    assert yaml_io.load(content.decode())["spec"] == {"capabilities": ["composition"]}
    assert package.NAME == patch_and_transform.NAME


def test_the_cache_file_is_named_as_crossplane_expects_it() -> None:
    """The name is a DNS label: 50 characters of the source and 12 of the digest."""
    source, _, digest = package.REFERENCE.partition("@")
    assert f"{source.replace('.', '-').replace('/', '-')}-sha256-{digest[7:12]}.gz" == package.FILE
    (volume,), (mount,) = package.volumes()
    assert mount["mountPath"] == f"/cache/xpkg/{package.FILE}"
    assert volume["name"] == mount["name"]


def test_cores_that_can_load_images_use_our_function_and_others_pull_upstreams() -> None:
    facts = replace(FACTS, reconciler_image=IMAGE)
    on_kind = render(on_clouds(), facts).core["api/functions.yaml"].decode()
    function, config = yaml_io.load_all(on_kind)
    assert function["spec"]["package"] == package.REFERENCE
    assert function["spec"]["packagePullPolicy"] == "Never"
    assert function["spec"]["runtimeConfigRef"]["name"] == config["metadata"]["name"]
    pod = config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]
    assert [each["image"] for each in pod["containers"]] == [IMAGE]
    elsewhere = on_clouds(
        ["stage"], ["quotes"], core={"provider": "existing", "context": "theirs"},
        git={"provider": "url", "core": "https://git.example/c", "apps": "https://git.example/a"},
    )  # fmt: skip
    text = render(elsewhere, facts).core["api/functions.yaml"].decode()
    (theirs,) = yaml_io.load_all(text)
    assert theirs["spec"]["package"].startswith("xpkg.crossplane.io/")
