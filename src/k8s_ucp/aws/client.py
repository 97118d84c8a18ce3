"""Calls AWS operations by name; failures are raised as CloudFailed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from k8s_ucp.managed.external import CloudFailed

CALL_SECONDS = 20.0
MOST_CLIENTS = 100
"""Kept ones, of some megabytes: claims name regions, and could name any number of them."""

Answer = dict[str, Any]

_making = threading.Lock()
"""Held while a client is created: it takes tens of milliseconds and is partly not thread-safe."""


class ResourceNotFound(CloudFailed):
    """The cloud has no such resource."""


@dataclass(frozen=True)
class AwsAccount:
    """Endpoint and credentials. caller: added to the user agent."""

    endpoint: str
    access_key: str
    secret_key: str = field(repr=False)
    caller: str

    def call(self, service: str, region: str, operation: str, **parameters: Any) -> Answer:
        """Call one operation. Raises ResourceNotFound, CloudFailed."""
        import botocore.exceptions
        import botocore.parsers
        from botocore import xform_name

        try:
            client = _client(self, service, region)
        except botocore.exceptions.BotoCoreError as error:  # Such as for a region of no valid name.
            raise CloudFailed(f"{operation}: {error}") from error
        try:
            answer: Answer = getattr(client, xform_name(operation))(**parameters)
        except botocore.exceptions.ClientError as error:
            raise _refused(operation, error.response) from error
        except botocore.exceptions.ParamValidationError as error:
            raise CloudFailed(f"{operation}: {error}") from error
        except (
            botocore.exceptions.BotoCoreError,
            botocore.parsers.ResponseParserError,
        ) as error:
            # The operation may have succeeded; only observing the resource can tell.
            raise CloudFailed(f"{operation}: {error}", certain=False) from error
        return answer


def _refused(operation: str, answer: Mapping[str, Any]) -> CloudFailed:
    error = answer.get("Error") or {}
    code, status = (
        str(error.get("Code", "")),
        answer.get("ResponseMetadata", {}).get("HTTPStatusCode"),
    )
    message = f"{operation}: {code}: {error.get('Message', '')}"
    absent = status == 404 or "NotFound" in code or code.startswith("NoSuch")
    return (ResourceNotFound if absent else CloudFailed)(
        message, certain=status is None or status < 500
    )


def accepted(service: str, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that an operation accepts."""
    taken = _members(service, operation)
    return {name: value for name, value in parameters.items() if name in taken}


@cache
def _members(service: str, operation: str) -> frozenset[str]:
    with _making:
        model = _session().get_service_model(service)
        return frozenset(model.operation_model(operation).input_shape.members)


def _client(account: AwsAccount, service: str, region: str) -> Any:
    """A client shared by all threads; concurrent callers wait until it is created."""
    with _making:
        return _new_client(account, service, region)


@lru_cache(maxsize=MOST_CLIENTS)
def _new_client(account: AwsAccount, service: str, region: str) -> Any:
    from botocore.config import Config

    return _session().create_client(
        service,
        region_name=region,
        endpoint_url=account.endpoint,
        aws_access_key_id=account.access_key,
        aws_secret_access_key=account.secret_key,
        config=Config(
            connect_timeout=CALL_SECONDS,
            read_timeout=CALL_SECONDS,
            # Callers decide about retries.
            retries={"total_max_attempts": 1},
            user_agent_extra=account.caller,
            s3={"addressing_style": "path"},
        ),
    )


@cache
def _session() -> Any:
    """The session caches endpoints and service models; callers hold the lock."""
    import botocore.session

    return botocore.session.get_session()
