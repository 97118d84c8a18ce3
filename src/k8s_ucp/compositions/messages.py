"""Converts between Crossplane's messages for functions and plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import crossplane.function.proto.v1.run_function_pb2 as messages
from crossplane.function import resource, response

from k8s_ucp.compositions.function import (
    CompositionError,
    Desired,
    Object,
    Observed,
    Request,
    Response,
)

_ENVIRONMENT = "apiextensions.crossplane.io/environment"
"""Key in the pipeline's context."""


def request_of(message: Any) -> Request:
    """The request in a RunFunctionRequest."""
    return Request(
        composite=_object(message.observed.composite.resource),
        input=_object(message.input),
        observed={
            name: Observed(_object(each.resource), dict(each.connection_details))
            for name, each in message.observed.resources.items()
        },
        desired=_desired(message),
        environment=_object(message.context).get(_ENVIRONMENT) or {},
        answer=_object(message.desired.composite.resource),
        connection=dict(message.desired.composite.connection_details),
    )


def message_of(request: Request) -> Any:
    """The inverse of `request_of`."""
    message = messages.RunFunctionRequest()
    message.observed.composite.resource.update(dict(request.composite))
    message.input.update(dict(request.input))
    for name, observed in request.observed.items():
        item = message.observed.resources[name]
        item.resource.update(dict(observed.object))
        item.connection_details.update(observed.connection)
    for name, desired in request.desired.items():
        _add(message, name, desired)
    message.desired.composite.resource.update(dict(request.answer))
    message.desired.composite.connection_details.update(request.connection)
    if request.environment:
        message.context.update({_ENVIRONMENT: dict(request.environment)})
    return message


def answer(message: Any, found: Response) -> Any:
    """A function's response to a RunFunctionRequest."""
    answered = response.to(message)
    for name, each in found.resources.items():
        _add(answered, name, each)
    if found.environment:
        answered.context.update({_ENVIRONMENT: found.environment})
    composite = answered.desired.composite
    composite.resource.update(found.composite)
    for key, value in found.connection.items():
        composite.connection_details[key] = value
    if found.unready:
        composite.ready = messages.READY_FALSE
    for text in found.warnings:
        response.warning(answered, text)
    return answered


def failure(message: Any, text: str) -> Any:
    """A response with a fatal result; Crossplane shows the text."""
    answered = response.to(message)
    response.fatal(answered, text)
    return answered


def response_of(answered: Any) -> Response:
    """The inverse of `answer`. Raises CompositionError for a fatal result."""
    for each in answered.results:
        if each.severity == messages.SEVERITY_FATAL:
            raise CompositionError(each.message)
    composite = answered.desired.composite
    return Response(
        resources=_desired(answered),
        composite=dict(_object(composite.resource)),
        connection=dict(composite.connection_details),
        environment=_object(answered.context).get(_ENVIRONMENT) or {},
        warnings=[
            each.message for each in answered.results if each.severity == messages.SEVERITY_WARNING
        ],
        unready=composite.ready == messages.READY_FALSE,
    )


def _add(message: Any, name: str, desired: Desired) -> None:
    item = message.desired.resources[name]
    item.resource.Clear()
    item.resource.update(dict(desired.object))
    item.ready = messages.READY_TRUE if desired.ready else messages.READY_UNSPECIFIED


def _desired(message: Any) -> dict[str, Desired]:
    return {
        name: Desired(_object(each.resource), each.ready == messages.READY_TRUE)
        for name, each in message.desired.resources.items()
    }


def _object(struct: Any) -> Object:
    found: Mapping[str, Any] = _whole_numbers(resource.struct_to_dict(struct))
    return found


def _whole_numbers(value: Any) -> Any:
    """Convert whole floats to integers: a Struct has only floats, Kubernetes has both."""
    if isinstance(value, dict):
        return {key: _whole_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
