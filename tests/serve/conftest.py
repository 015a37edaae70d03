"""Servers that tests ask: an application in this process, and the same behind uvicorn on a free loopback port."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from loopback import running

from empatheia.serve import ServerSettings, create_app
from empatheia.serve.run import Launch


@pytest.fixture(scope="package", autouse=True)
def no_corpora() -> Iterator[None]:
    """Distractors come from the sample, which is read in no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EMPATHEIA_DATA", raising=False)
        yield


@pytest.fixture(scope="session")
def app(tiny_model):
    """The application with the bundled models and the tiny one."""
    return create_app(ServerSettings(models=(str(tiny_model),)))


@pytest.fixture(scope="session")
def client(app) -> Iterator[TestClient]:
    """Asks it in this process."""
    with TestClient(app) as asking:
        yield asking


@pytest.fixture(scope="session")
def address(tiny_model) -> Iterator[str]:
    """Where a real server answers, with the bundled models and the tiny one."""
    settings = ServerSettings(models=(str(tiny_model),))
    with running(Launch(server=settings), create_app(settings)) as where:
        yield where
