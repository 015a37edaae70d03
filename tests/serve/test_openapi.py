"""The OpenAPI document: complete, its examples work, and requests made from it never break the server."""

from __future__ import annotations

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def schema(address):
    found = schemathesis.openapi.from_url(f"{address}/openapi.json")
    found.config.request_timeout = 120  # a slow machine fails no test
    return found


def operations() -> list[tuple[str, str]]:
    """Path and method of every route."""
    from empatheia.serve import ServerSettings, create_app

    paths = create_app(ServerSettings(page=False)).openapi()["paths"]
    return [(path, method) for path, methods in paths.items() for method in methods]


@pytest.mark.parametrize(("path", "method"), operations())
def test_requests_made_from_the_document(schema, path, method):
    @hypothesis.given(case=schema[path][method].as_strategy())
    @hypothesis.settings(
        max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    def holds(case):
        case.call_and_validate(checks=CHECKS)

    holds()


def test_every_route_is_described_and_every_example_works(client, app):
    document = app.openapi()
    n_examples = 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"] and operation["description"], path
            if method != "post":
                continue
            assert {"400", "413", "422", "429"} <= set(operation["responses"])
            if "requestBody" not in operation:
                continue
            media = operation["requestBody"]["content"]["application/json"]
            for example in media["examples"].values():
                address = path
                if "{id}" in path:  # a job that still takes rows
                    opened = client.post("/v1/jobs", json={"rows": [{"input": "I lost my keys."}], "last": False})
                    address = path.format(id=opened.json()["id"])
                answer = client.post(address, json=example["value"])
                assert answer.status_code in (200, 202), (path, example, answer.text)
                n_examples += 1
    assert n_examples >= 8
