"""AWS: EKS accepts a presigned GetCallerIdentity of STS as a token; signing needs no request.

Implements Signature Version 4 in a query string, as AWS documents it. botocore would be 14 MB for
these sixty lines; see decision 15.
"""

from __future__ import annotations

import base64
import configparser
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from k8s_ucp.reconciler.access.authenticators.base import (
    AuthInfo,
    Cloud,
    CloudAuthenticator,
    NoAccess,
    kubeconfig,
)
from k8s_ucp.reconciler.access.authenticators.cloud_access import unusable

AWS = "aws"
CLUSTER_HEADER = "x-k8s-aws-id"
PREFIX = "k8s-aws-v1."
URL_SECONDS = 60
"""EKS accepts a token for 14 minutes, whatever its URL says."""
_EMPTY = hashlib.sha256(b"").hexdigest()
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+")


@dataclass(frozen=True)
class Keys:
    """Credentials of an AWS identity."""

    access: str
    secret: str
    session: str = ""

    def __repr__(self) -> str:
        return f"Keys({self.access})"


class Aws(CloudAuthenticator):
    """A presigned GetCallerIdentity, of the identity itself or of a role that it assumes."""

    name = AWS

    def connect(self, auth_info: AuthInfo, cloud: Cloud) -> dict[str, Any]:
        cluster = (
            auth_info.argument("--cluster-name", "--cluster-id", "-i")
            or auth_info.cluster_info.name
        )
        region = _region(auth_info)
        if not cluster or not region:
            missing = "the name of the cluster" if not cluster else "the region"
            raise NoAccess(
                "ClusterUnknown", f"neither the kubeconfig nor its owner specifies {missing}"
            )
        keys = read_keys(cloud.credential(AWS))
        role = auth_info.argument("--role-arn", "--role", "-r")
        if role:
            keys = _take_on(role, keys, region, cloud)
        return kubeconfig(auth_info.cluster, {"token": token(cluster, keys, region, cloud.now())})


def token(cluster: str, keys: Keys, region: str, now: float) -> str:
    """The token with which the identity authenticates to the EKS cluster."""
    url = presign(
        f"{sts(region)}/?Action=GetCallerIdentity&Version=2011-06-15",
        keys,
        region=region,
        service="sts",
        now=now,
        seconds=URL_SECONDS,
        headers={CLUSTER_HEADER: cluster},
    )
    return PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def sts(region: str) -> str:
    """Address of STS in a region."""
    return f"https://sts.{region}.amazonaws.com" + (".cn" if region.startswith("cn-") else "")


def presign(
    url: str,
    keys: Keys,
    *,
    region: str,
    service: str,
    now: float,
    seconds: int,
    headers: Mapping[str, str] | None = None,
    payload: str = _EMPTY,
) -> str:
    """A GET request that anyone with the URL may send for `seconds`, with exactly these headers.

    payload: hash of the body, or UNSIGNED-PAYLOAD.
    """
    parts = urlsplit(url)
    time = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    signed = {"host": parts.netloc, **{k.lower(): v.strip() for k, v in (headers or {}).items()}}
    names = ";".join(sorted(signed))
    query = [tuple(each.split("=", 1)) for each in parts.query.split("&") if each]
    query += [
        ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
        ("X-Amz-Credential", _encoded(f"{keys.access}/{scope}")),
        ("X-Amz-Date", time),
        ("X-Amz-Expires", str(seconds)),
        ("X-Amz-SignedHeaders", _encoded(names)),
    ]
    if keys.session:
        query.append(("X-Amz-Security-Token", _encoded(keys.session)))
    sorted_query = "&".join("=".join(each) for each in sorted(query))
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    request = f"GET\n{parts.path or '/'}\n{sorted_query}\n{lines}\n{names}\n{payload}"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}"
    key = f"AWS4{keys.secret}".encode()
    for part in (time[:8], region, service, "aws4_request"):
        key = _hmac(key, part)
    signature = _hmac(key, text).hex()
    return f"{parts.scheme}://{parts.netloc}{parts.path}?{sorted_query}&X-Amz-Signature={signature}"


def read_keys(text: str) -> Keys:
    """The profile `default` of a credentials file, or its only profile. Raises NoAccess."""
    file = configparser.ConfigParser(interpolation=None)
    try:
        file.read_string(text)
    except configparser.Error as error:
        raise unusable(AWS, "is not a valid AWS credentials file") from error
    sections = file.sections()
    name = "default" if "default" in sections or len(sections) != 1 else sections[0]
    found = dict(file[name]) if name in sections else {}
    wanted = ("aws_access_key_id", "aws_secret_access_key")
    missing = [each for each in wanted if not found.get(each)]
    if missing:
        raise unusable(AWS, f"lacks {', '.join(missing)} in its profile {name}")
    return Keys(found[wanted[0]], found[wanted[1]], found.get("aws_session_token", ""))


def _take_on(role: str, keys: Keys, region: str, cloud: Cloud) -> Keys:
    question = (
        f"{sts(region)}/?Action=AssumeRole&RoleArn={_encoded(role)}"
        "&RoleSessionName=k8s-ucp&Version=2011-06-15"
    )
    url = presign(
        question, keys, region=region, service="sts", now=cloud.now(), seconds=URL_SECONDS
    )
    answer = cloud.fetch(url)
    try:
        found = answer["AssumeRoleResponse"]["AssumeRoleResult"]["Credentials"]
        parts = [found[each] for each in ("AccessKeyId", "SecretAccessKey", "SessionToken")]
        return Keys(*map(str, parts))
    except (KeyError, TypeError) as error:
        raise NoAccess("TokenRefused", f"STS returned no credentials of {role}") from error


def _region(auth_info: AuthInfo) -> str:
    region = auth_info.argument("--region") or auth_info.cluster_info.region
    if not region:
        # https://<id>.<..>.<region>.eks.amazonaws.com
        host = urlsplit(auth_info.server).hostname or ""
        region = host.split(".")[-4] if ".eks.amazonaws." in host and host.count(".") > 4 else ""
    return region if _REGION.fullmatch(region) else ""


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
