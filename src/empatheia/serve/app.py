"""The application: routes, pages and what stands in front of them.

>>> from empatheia.serve import ServerSettings, create_app  # doctest: +SKIP
>>> app = create_app(ServerSettings())  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from empatheia import __version__
from empatheia.care import Care
from empatheia.serve import analysis, caring, chat, completions, health, job_routes, labels, ranking, responses, scores
from empatheia.serve.jobs import Jobs
from empatheia.serve.pages import page_routes
from empatheia.serve.service import Service
from empatheia.serve.settings import ServerSettings
from empatheia.serve.temporary import sweep
from empatheia.serve.web import protect

STATIC = Path(__file__).with_name("static")
_ABOUT = (
    "Understands what a person feels and why, and answers accordingly. The chat routes speak OpenAI's protocol; the"
    " object `empathy` in their answers, and `/v1/analyze`, tell what was perceived. A machine answers: no therapy."
)


def create_app(settings: ServerSettings | None = None, care: Care | bool = True) -> FastAPI:
    """A server's application.

    Args:
        settings: None = the defaults.
        care: The check before whoever answers; False = none, which every answer says.

    Raises:
        ConfigError: A model of the settings cannot be served.
        MissingResourceError: It is not on this machine.
    """
    settings = settings or ServerSettings()
    service = Service(settings, care)
    jobs = Jobs(service)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        sweep()
        await service.warm()
        jobs.take_over()
        try:
            yield
        finally:
            await jobs.close()
            await service.close()

    app = FastAPI(
        title="empatheia",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service, app.state.jobs = service, jobs
    for part in (chat, completions, responses, analysis, ranking, scores, caring, health, labels, job_routes):
        app.include_router(part.router)
    if settings.page:
        app.include_router(page_routes(STATIC))
    protect(app, settings, counts=service.measures)
    return app
