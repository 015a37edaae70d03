"""How far a study is."""

from __future__ import annotations

import time

from sqlalchemy import func, select

from empatheia_people.studies.store import Store, shown_url
from empatheia_people.studies.tables import Assignment, Base, HitRow, Message, Pair, Participant, Rating, Worker


def standing_of(store: Store) -> dict[str, object]:
    """Counts of HITs, seats, workers and answers, JSON-ready."""
    study, design = store.study(), store.design()
    with store.read() as session:

        def count(what: type[Base]) -> int:
            return session.scalar(select(func.count()).select_from(what)) or 0

        states: dict[str, int] = {
            state: n for state, n in session.execute(select(Assignment.state, func.count()).group_by(Assignment.state))
        }
        open_now = (Assignment.state == "open") & (Assignment.lease_until >= store.now())
        next_end = session.scalar(select(func.min(Assignment.lease_until)).where(open_now))
        n_open = session.scalar(select(func.count()).where(open_now)) or 0
        n_hits = count(HitRow)
        found: dict[str, object] = {
            "study": study.name,
            "store": shown_url(store.url),
            "protocol": design.protocol,
            "closed": "no" if study.closed is None else _moment(study.closed),
            "workers": count(Worker),
            "ratings": count(Rating),
        }
        if design.protocol == "collect":
            done = select(func.count()).where(Pair.state == "done")
            waiting = select(func.count()).where(Participant.state == "waiting")
            return found | {
                "pairs_done": session.scalar(done) or 0,
                "conversations": 2 * (session.scalar(done) or 0),
                "waiting": session.scalar(waiting) or 0,
                "messages": count(Message),
            }
    return found | {
        "hits": n_hits,
        "seats": n_hits * design.composition.raters,
        "submitted": states.get("submitted", 0),
        "open": n_open,
        "returned": states.get("returned", 0) + states.get("open", 0) - n_open,
        "extra": states.get("extra", 0),
        "next_seat_comes_back": "-" if next_end is None else _moment(next_end),
    }


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
