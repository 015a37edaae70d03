"""The tables of a study's store; versions of them are in ``versions``."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

SCHEMA_VERSION = 1
"""Of the tables and of exported files."""


class Base(DeclarativeBase):
    """All tables, with names of constraints that every database spells alike."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {str: Text, float: Float(53)}


class Study(Base):
    """The one study of a store; its row is also the lock under which seats are given out."""

    __tablename__ = "study"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str]
    design: Mapped[dict[str, Any]] = mapped_column(JSON)
    systems: Mapped[list[Any]] = mapped_column(JSON)
    secret: Mapped[str]
    schema_version: Mapped[int]
    created: Mapped[float]
    closed: Mapped[float | None]


class ItemRow(Base):
    """A context with its candidates."""

    __tablename__ = "item"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    key: Mapped[str] = mapped_column(Text, unique=True)
    set: Mapped[str]
    context: Mapped[list[Any]] = mapped_column(JSON)
    reference: Mapped[str | None]
    emotion: Mapped[str]
    candidates: Mapped[dict[str, Any]] = mapped_column(JSON)


class HitRow(Base):
    """A HIT of the manifest."""

    __tablename__ = "hit"
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    orders: Mapped[list[Any]] = mapped_column(JSON)


class TaskRow(Base):
    """A screen of a HIT; ``item`` is None for a check of attention."""

    __tablename__ = "task"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    hit: Mapped[int] = mapped_column(ForeignKey("hit.number"), index=True)
    place: Mapped[int]
    item: Mapped[int | None] = mapped_column(ForeignKey("item.id"), index=True)
    key: Mapped[str]
    cards: Mapped[list[Any]] = mapped_column(JSON)
    is_bonus: Mapped[bool] = mapped_column(Boolean)
    __table_args__ = (UniqueConstraint("hit", "place"),)


class Worker(Base):
    """A person under a pseudonym: the platform's name is kept as a keyed digest only."""

    __tablename__ = "worker"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    created: Mapped[float]
    consented: Mapped[float | None]
    attempts: Mapped[int]
    passed: Mapped[float | None]
    withdrawn: Mapped[float | None]


class Assignment(Base):
    """A seat of a HIT in a worker's hands.

    ``state``: ``open``, ``submitted``, ``returned`` (given back or run out), ``extra`` (submitted after the seat
    had gone to somebody else).
    """

    __tablename__ = "assignment"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    worker: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    hit: Mapped[int] = mapped_column(ForeignKey("hit.number"), index=True)
    seat: Mapped[int]
    state: Mapped[str] = mapped_column(String(16), index=True)
    lease_until: Mapped[float]
    started: Mapped[float]
    submitted: Mapped[float | None]
    points: Mapped[int | None]
    is_attentive: Mapped[bool | None] = mapped_column(Boolean)
    code: Mapped[str | None]
    platform: Mapped[str]
    __table_args__ = (UniqueConstraint("worker", "hit"), Index("ix_assignment_hit_state", "hit", "state"))


class Rating(Base):
    """An answer; ``first`` is what was answered first, ``version`` counts changes."""

    __tablename__ = "rating"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    assignment: Mapped[int] = mapped_column(ForeignKey("assignment.id", ondelete="CASCADE"), index=True)
    task: Mapped[int] = mapped_column(ForeignKey("task.id"), index=True)
    card: Mapped[int]
    criterion: Mapped[str]
    value: Mapped[str]
    first: Mapped[str]
    version: Mapped[int]
    client: Mapped[str]
    at: Mapped[float]
    __table_args__ = (UniqueConstraint("assignment", "task", "card", "criterion"),)


class Event(Base):
    """What happened, in order; rows are only ever added, and taken away with their worker on withdrawal."""

    __tablename__ = "event"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    at: Mapped[float]
    worker: Mapped[int | None] = mapped_column(ForeignKey("worker.id", ondelete="CASCADE"), index=True)
    assignment: Mapped[int | None] = mapped_column(Integer, index=True)
    kind: Mapped[str] = mapped_column(String(32), index=True)
    client: Mapped[str | None] = mapped_column(String(64))
    data: Mapped[dict[str, Any]] = mapped_column(JSON)
    __table_args__ = (UniqueConstraint("assignment", "client"),)


class Message(Base):
    """A message of a conversation: in a task of a live study, or in a room of a collection."""

    __tablename__ = "message"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    room: Mapped[str] = mapped_column(String(64), index=True)
    place: Mapped[int]
    worker: Mapped[int | None] = mapped_column(ForeignKey("worker.id", ondelete="CASCADE"), index=True)
    text: Mapped[str]
    client: Mapped[str] = mapped_column(String(64))
    at: Mapped[float]
    data: Mapped[dict[str, Any]] = mapped_column(JSON)
    __table_args__ = (UniqueConstraint("room", "place"), UniqueConstraint("room", "client"))


class Participant(Base):
    """A round of a worker in a collection: label, situation, partner.

    ``state``: ``offered``, ``written`` (has a situation, not waiting), ``waiting``, ``chat``, ``done``, ``left``.
    """

    __tablename__ = "participant"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    worker: Mapped[int] = mapped_column(ForeignKey("worker.id", ondelete="CASCADE"), index=True)
    state: Mapped[str] = mapped_column(String(16), index=True)
    offered: Mapped[list[Any]] = mapped_column(JSON)
    label: Mapped[str | None]
    situation: Mapped[str]
    pair: Mapped[int | None] = mapped_column(ForeignKey("pair.id"), index=True)
    seen: Mapped[float]
    since: Mapped[float]
    code: Mapped[str | None]
    platform: Mapped[str]
    flags: Mapped[list[Any]] = mapped_column(JSON)


class Pair(Base):
    """Two rounds that met: two conversations, the second with roles changed.

    ``state``: ``open``, ``done``, ``broken``.
    """

    __tablename__ = "pair"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    first: Mapped[int]
    second: Mapped[int | None]
    state: Mapped[str] = mapped_column(String(16), index=True)
    chat: Mapped[int]
    since: Mapped[float]
    reason: Mapped[str]
