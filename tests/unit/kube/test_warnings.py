"""Warning headers of an API server, which a rehearsal reports."""

from __future__ import annotations

from k8s_ucp.kube.connection import _warnings


def test_the_text_is_extracted_from_warning_headers() -> None:
    headers = [
        '299 - "v1 Endpoints is deprecated in v1.33+"',
        '299 - "unknown field \\"spec.x\\""',
        "199 - nothing",
    ]
    assert list(_warnings(headers)) == [
        "v1 Endpoints is deprecated in v1.33+",
        'unknown field "spec.x"',
    ]
