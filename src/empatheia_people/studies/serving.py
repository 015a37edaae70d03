"""The pages of a study over HTTP; what stands in front of them is that of every server of ours."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Depends, FastAPI, Request, WebSocket
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from empatheia import __version__
from empatheia.serve.faults import ApiError
from empatheia.serve.pages import SHARED, page_routes
from empatheia.serve.requests import GuardedRequest, GuardedRoute
from empatheia.serve.run import run_app
from empatheia.serve.settings import WebSettings
from empatheia.serve.web import protect
from empatheia_people.studies.answers import questions
from empatheia_people.studies.design import Design
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.links import Refused
from empatheia_people.studies.rooms import HALF, Rooms, has_half_characters
from empatheia_people.studies.store import Store, StoreError
from empatheia_people.studies.talks import Responder, Talks

STATIC = Path(__file__).with_name("static")
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
"""What MTurk sends in place of an assignment while somebody only looks."""
Number = Annotated[int, Field(ge=-(2**31), lt=2**31)]
"""What every store can hold and be asked for."""


class WholeRequest(GuardedRequest):
    """A request with half a character in it is refused: a worker's name must not become another one."""

    def cleaned(self, value: object) -> object:
        """See the base; raises an ApiError."""
        if has_half_characters(value):
            raise ApiError(400, HALF, code="half_character")
        return value


class WholeRoute(GuardedRoute):
    """A route of the study's API."""

    request_class = WholeRequest


router = APIRouter(prefix="/api", route_class=WholeRoute)


class Entry(BaseModel):
    """Query parameters with which a page was opened."""

    query: dict[str, str] = Field(max_length=50)


class Choices(BaseModel):
    """Answers to the questions before the first task."""

    answers: list[Number] = Field(max_length=100)


class Placed(BaseModel):
    """Where the cards of the warm-up lie."""

    answers: list[str] = Field(max_length=100)


class Rate(BaseModel):
    """One answer."""

    assignment: Number
    task: Number
    card: Number
    criterion: str = Field(max_length=200)
    value: Any
    client: str = Field(min_length=1, max_length=64)
    seen: Number | None = None


class Place(BaseModel):
    """A task of a HIT, or the HIT."""

    assignment: Number
    task: Number = 0


class Say(Place):
    """A message to a system."""

    text: str = Field(max_length=20_000)
    client: str = Field(min_length=1, max_length=64)


class Notes(BaseModel):
    """What pages tell of themselves."""

    assignment: Number | None = None
    events: list[dict[str, Any]] = Field(max_length=100)


def desk_of(request: Request) -> Desk:
    """The study's desk."""
    return request.app.state.desk


AtDesk = Annotated[Desk, Depends(desk_of)]


def who(request: Request) -> tuple[int, str]:
    """Worker and the platform's word, from the token.

    Raises:
        Refused: No token, or a forged one.
    """
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer":
        raise Refused("this page has no session; open your link again.", 401, "no_session")
    return desk_of(request).sessions.session(token.strip())


Who = Annotated[tuple[int, str], Depends(who)]


@router.get("/study")
def study(desk: AtDesk) -> dict[str, object]:
    """What pages need of the design; right answers stay here."""
    return public(desk.design)


def public(design: Design) -> dict[str, object]:
    """What may leave the server of a design."""
    warm_up, bonus, rules, pay = design.onboarding.warm_up, design.composition.bonus, design.worker, design.payment
    asked = {"name", "question", "words", "kind", "rationale", "turns"}
    limits = {"min_turns", "max_turns", "characters"}
    return {
        **design.model_dump(mode="json", include={"name", "title", "language", "protocol", "texts"}),
        **rules.model_dump(mode="json", include={"entry", "minutes", "cap", "requirements"}),
        "criteria": [
            c.model_dump(mode="json", include=asked) | {"answers": design.answers_of(c)} for c in design.criteria
        ],
        "payment": pay.model_dump(include={"currency", "base", "bonus"}) | {"hour": round(design.hourly_rate, 2)},
        "bonus": None if bonus is None else {"tasks": bonus.per_hit, "must_validate": bonus.must_validate},
        "warm_up": None
        if warm_up is None
        else {"context": list(warm_up.context), "cards": [{"text": card.text} for card in warm_up.cards]},
        "questions": [{"question": q.question, "answers": list(q.answers)} for q in design.onboarding.questions],
        "attempts": design.onboarding.attempts,
        "live": design.live.model_dump(mode="json", include={*limits, "compare"}),
        "collect": design.collect.model_dump(mode="json", include={*limits, "situation_words"}),
    }


@router.post("/enter")
def enter(entry: Entry, desk: AtDesk) -> dict[str, object]:
    """A session for whoever opened the page."""
    rules = desk.design.worker
    platform = entry.query.get(rules.assignment_field, "")
    if platform == PREVIEW:
        return {"preview": True, "token": None}
    if rules.entry == "invited":
        return {"preview": False, "token": desk.sessions.enter_invited(entry.query.get("invitation", ""))}
    name = entry.query.get(rules.id_field, "")
    if rules.entry == "open":
        name = name or entry.query.get("visitor", "")
    elif not name:
        raise Refused(f"the link lacks your worker id (?{rules.id_field}=...). Use the platform's link.", 400, "worker")
    return {"preview": False, "token": desk.sessions.enter(name, platform)}


@router.get("/me")
def me(worker: Who, desk: AtDesk) -> dict[str, object]:
    """What the worker has done so far."""
    return desk.sessions.standing(worker[0])


@router.post("/consent")
def consent(worker: Who, desk: AtDesk) -> dict[str, object]:
    """The worker agrees."""
    desk.sessions.consent(worker[0])
    return desk.sessions.standing(worker[0])


@router.post("/withdraw")
def withdraw(worker: Who, desk: AtDesk) -> dict[str, object]:
    """Deletes everything of the worker."""
    desk.sessions.withdraw(worker[0])
    return {"withdrawn": True}


@router.post("/warm-up")
def warm_up(placed: Placed, desk: AtDesk) -> dict[str, object]:
    """Whether each card of the warm-up lies well."""
    asked = desk.design.onboarding.warm_up
    cards = () if asked is None else asked.cards
    return {"right": [value in card.right for value, card in zip(placed.answers, cards, strict=False)]}


@router.post("/questions")
def comprehension(choices: Choices, worker: Who, desk: AtDesk) -> dict[str, object]:
    """Answers to the questions before the first task."""
    return desk.sessions.comprehension(worker[0], choices.answers)


@router.post("/take")
def take(worker: Who, desk: AtDesk, request: Request) -> dict[str, object]:
    """The worker's HIT: the one that is open, or a new one."""
    seat = desk.seats.take(*worker)
    page: dict[str, Any] = desk.ratings.page(worker[0], seat)
    needed = {
        screen.place: [[asked.card, asked.criterion] for asked in questions(desk.design, screen) if asked.is_needed]
        for screen in desk.seats.screens(seat.hit, seat.seat)
    }
    for task in page["tasks"]:
        own = needed[task["place"]]
        task["needed"] = own if desk.design.protocol == "turn_annotation" else len(own)
    if desk.design.protocol == "live":
        talks: Talks = request.app.state.talks
        for task in page["tasks"]:
            task["messages"] = talks.messages(seat.assignment, task["place"])
    return page


@router.put("/rating")
def rate(rating: Rate, worker: Who, desk: AtDesk) -> dict[str, object]:
    """Keeps one answer."""
    return desk.ratings.rate(worker[0], **rating.model_dump())


@router.post("/validate")
def validate(place: Place, worker: Who, desk: AtDesk) -> dict[str, object]:
    """Whether the bonus point of a task is won."""
    return {"won": desk.ratings.validate_bonus(worker[0], place.assignment, place.task)}


@router.post("/submit")
def submit(place: Place, worker: Who, desk: AtDesk) -> dict[str, object]:
    """Sends a HIT."""
    return desk.submissions.submit(worker[0], place.assignment)


@router.post("/return")
def give_back(place: Place, worker: Who, desk: AtDesk) -> dict[str, object]:
    """Gives a HIT back."""
    desk.seats.give_back(worker[0], place.assignment)
    return {"returned": True}


@router.post("/notes")
def note(notes: Notes, worker: Who, desk: AtDesk) -> dict[str, object]:
    """Times on tasks, loss of focus."""
    desk.ratings.note(worker[0], notes.assignment, notes.events)
    return {}


@router.post("/say")
def say(message: Say, worker: Who, request: Request) -> dict[str, object]:
    """A message to a system, and its answer."""
    talks: Talks = request.app.state.talks
    return {"messages": talks.say(worker[0], message.assignment, message.task, message.text, message.client)}


@router.get("/healthz")
def healthz(desk: AtDesk) -> dict[str, object]:
    """Whether the store answers."""
    desk.store.study()
    return {"status": "ok"}


def study_app(
    store: Store,
    settings: WebSettings | None = None,
    responders: dict[str, Responder] | None = None,
    tick_seconds: float = 1.0,
) -> FastAPI:
    """The application of a study.

    Args:
        store: With the study.
        settings: None = the defaults.
        responders: Who answers in live studies and in place of a second person, by name; None = those of the design,
            loaded when first asked.
        tick_seconds: How often waiting rooms look for those who are gone.

    Raises:
        DataError: The store holds no study.
    """
    settings = settings or WebSettings()
    desk = Desk(store)
    talks = Talks(desk, responders)
    rooms = Rooms(desk, talks)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            if desk.design.protocol == "collect":
                group.start_soon(rooms.keep, tick_seconds)
            yield
            group.cancel_scope.cancel()
        store.close()

    app = FastAPI(title=desk.design.title, version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.root_path = settings.root_path
    app.state.desk, app.state.talks, app.state.rooms = desk, talks, rooms
    app.include_router(router)
    app.include_router(page_routes(STATIC))
    app.include_router(page_routes(*SHARED))
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(StoreError, _unavailable)

    @app.websocket("/api/room")
    async def room(socket: WebSocket) -> None:
        await rooms.attend(socket)

    protect(app, settings, locked=())
    return app


async def _refused(_: Request, error: Exception) -> JSONResponse:
    status = error.status if isinstance(error, Refused) else 400
    code = error.code if isinstance(error, Refused) else "refused"
    return ApiError(status, str(error), code=code).response()


async def _unavailable(_: Request, error: Exception) -> JSONResponse:
    del error  # it names the place of the store
    said = "the study's store cannot be reached now; your answers stay on this page and are sent again."
    return ApiError(503, said, code="store", headers={"retry-after": "2"}).response()


def run(
    store: Store, host: str, port: int, hosts: tuple[str, ...], root_path: str, told: Callable[[str], None]
) -> None:
    """Serves until it is told to end.

    Args:
        store: With the study.
        host: Address to listen on.
        port: 0 = a free one.
        hosts: Accepted host names; none = any.
        root_path: What a proxy in front cuts off.
        told: Is given the address.
    """
    app = study_app(store, WebSettings(hosts=hosts, root_path=root_path))
    run_app(app, host, port, lambda address: told(f"{address}/"), root_path, sockets=True)
