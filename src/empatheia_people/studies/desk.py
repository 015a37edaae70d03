"""The desk of a study with ratings: who takes part, their seats, their answers, what they send."""

from __future__ import annotations

from empatheia_people.studies.ratings import Ratings
from empatheia_people.studies.seats import Seats
from empatheia_people.studies.sessions import Sessions
from empatheia_people.studies.store import Store
from empatheia_people.studies.submissions import Submissions


class Desk:
    """The four services of a study, over one store.

    Args:
        store: With a study in it.
    """

    def __init__(self, store: Store) -> None:
        self.store, self.design = store, store.design()
        self.sessions = Sessions(store, self.design)
        self.seats = Seats(self.sessions)
        self.ratings = Ratings(self.seats)
        self.submissions = Submissions(self.ratings)
