"""The table of AWS kinds, compared with the manifests rendered for AWS."""

from __future__ import annotations

import re
from pathlib import Path

from k8s_ucp.aws.kinds.table import KINDS

TREES = Path(__file__).parents[2] / "golden" / "trees"
DECLARED = re.compile(r"^apiVersion: (\w+\.aws\.m\.upbound\.io)/\w+\nkind: (\w+)$", re.MULTILINE)


def test_every_kind_rendered_for_aws_is_in_the_table() -> None:
    rendered = {
        f"{kind}.{group}"
        for file in TREES.rglob("*.yaml")
        for group, kind in DECLARED.findall(file.read_text("utf-8"))
    }

    assert {"Cluster.eks.aws.m.upbound.io", "VPC.ec2.aws.m.upbound.io"} <= rendered
    assert rendered <= KINDS.keys()
