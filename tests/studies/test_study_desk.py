"""Seats, answers and leaving: both stores, hurried clocks, forged words, two tabs, late work."""

from __future__ import annotations

import sqlite3
import threading

import pytest
from made_studies import fill, made_items, meed2, simple

from empatheia.errors import ConfigError, DataError
from empatheia_people.studies.answers import questions
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.links import Refused, opened, sign
from empatheia_people.studies.sheets import read_sheets
from empatheia_people.studies.simulation import Opinion, crowd_of, work_through
from empatheia_people.studies.store import Store, StoreError

SMALL = ("composition.hits=2", "composition.raters=2")


def enter(desk: Desk, name: str = "w1") -> int:
    worker = desk.sessions.session(desk.sessions.enter(name))[0]
    desk.sessions.consent(worker)
    return worker


def answer_all(desk: Desk, worker: int, seat, value: str = "good") -> None:
    for screen in desk.seats.screens(seat.hit, seat.seat):
        for asked in questions(desk.design, screen):
            card = screen.order.index(asked.card)
            desk.ratings.rate(
                worker, seat.assignment, screen.place, card, asked.criterion, value, f"{screen.place}-{card}"
            )


@pytest.fixture()
def desk(opened) -> Desk:
    return fill(opened(), meed2(*SMALL), made_items(20))


def test_a_hit_from_door_to_code(desk, opened):
    worker = enter(desk)
    seat = desk.seats.take(worker, "P1")
    assert desk.seats.take(worker) == seat.__class__(seat.assignment, seat.hit, seat.seat, False)  # reload
    with pytest.raises(Refused, match="task 1 is not finished"):
        desk.submissions.submit(worker, seat.assignment)
    answer_all(desk, worker, seat)
    sent = desk.submissions.submit(worker, seat.assignment)
    assert sent["points"] == 3 and sent["paid_bonus"] and len(sent["code"]) == 10
    assert desk.submissions.submit(worker, seat.assignment) == sent  # sent twice
    with pytest.raises(Refused, match="can no longer be changed") as caught:
        desk.ratings.rate(worker, seat.assignment, 0, 0, "quality", "bad", "late")
    assert caught.value.status == 409
    (sheet,) = read_sheets(desk.store, desk.design)
    assert (sheet.n_tasks, sheet.points, len(sheet.answers)) == (10, 3, 23)
    other = desk.seats.take(worker)
    assert other.hit != seat.hit and other.is_new
    again = Desk(opened())  # another process
    assert again.ratings.answers(worker, seat.assignment)[0]["value"] == "good"


def test_pages_show_neither_systems_nor_gold(desk):
    worker = enter(desk)
    page = desk.ratings.page(worker, desk.seats.take(worker))
    told = repr(page)
    assert "gold'" not in told and "system" not in told and "right" not in told
    assert sum(len(task["cards"]) == 3 for task in page["tasks"]) == 3 == sum(task["bonus"] for task in page["tasks"])
    assert set(page["tasks"][0]["cards"][0]) == {"text", "turns"}


def test_order_differs_between_seats_and_stays_for_one(desk):
    seats = [desk.seats.take(enter(desk, name)) for name in ("w1", "w2", "w3")]
    assert [seat.hit for seat in seats] == [1, 2, 1]
    first, third = (desk.seats.screens(seat.hit, seat.seat) for seat in (seats[0], seats[2]))
    assert [s.order for s in first] != [s.order for s in third] and [s.key for s in first] == [s.key for s in third]


def test_double_answers_and_two_tabs(desk):
    worker = enter(desk)
    seat = desk.seats.take(worker)

    def rate(value, client, seen=None):
        return desk.ratings.rate(worker, seat.assignment, 0, 0, "quality", value, client, seen)

    assert rate("good", "a") == {"version": 1, "other": False}
    assert rate("good", "a") == {"version": 1, "other": False}  # the page sent it again
    assert rate("bad", "b", 1) == {"version": 2, "other": False}
    assert rate("okay", "c", 1) == {"version": 3, "other": True}  # another tab knew version 1 only
    (answer,) = desk.ratings.answers(worker, seat.assignment)
    assert (answer["value"], answer["version"]) == ("okay", 3)


@pytest.mark.parametrize(
    ("task", "card", "criterion", "value", "status"),
    [
        (99, 0, "quality", "good", 404),
        (0, 9, "quality", "good", 404),
        (0, -1, "quality", "good", 404),
        (0, 0, "x" * 999, "good", 404),
        (0, 0, "quality", "great", 422),
        (0, 0, "quality", ["good"], 422),
        (0, 0, "quality", "x" * 10_000, 422),
    ],
)
def test_forged_answers_are_refused(desk, task, card, criterion, value, status):
    worker = enter(desk)
    seat = desk.seats.take(worker)
    with pytest.raises(Refused) as caught:
        desk.ratings.rate(worker, seat.assignment, task, card, criterion, value, "c")
    assert caught.value.status == status and len(str(caught.value)) < 300


def test_another_workers_hit_is_not_found(desk):
    seat = desk.seats.take(enter(desk, "w1"))
    other = enter(desk, "w2")
    for act in (
        lambda: desk.ratings.rate(other, seat.assignment, 0, 0, "quality", "good", "c"),
        lambda: desk.submissions.submit(other, seat.assignment),
        lambda: desk.ratings.validate_bonus(other, seat.assignment, 0),
        lambda: desk.ratings.answers(other, seat.assignment),
        lambda: desk.submissions.submit(other, 10**6),
    ):
        with pytest.raises(Refused, match="not yours"):
            act()


@pytest.mark.parametrize("name", ["", "   ", "x" * 10_000])
def test_worker_ids_that_are_none(desk, name):
    with pytest.raises(Refused, match="accepted: 1 to 200"):
        desk.sessions.enter(name)


def test_worker_ids_are_kept_as_digests_only(tmp_path):
    desk = fill(Store(str(tmp_path / "s.db")), meed2(*SMALL), made_items(20))
    for name in ("A1B2-SECRET/1", "<script>alert(1)</script>", "O'Brien; DROP TABLE worker", "nul\0byte", "名前"):
        assert desk.sessions.session(desk.sessions.enter(name)) == desk.sessions.session(desk.sessions.enter(name))
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"SECRET" not in raw and b"alert(1)" not in raw


def test_words_that_were_changed_or_are_old(desk, clock):
    token = desk.sessions.enter("w1")
    body, _, _ = token.partition(".")
    changed = token[:-1] + ("A" if token[-1] != "A" else "B")
    for forged in ("", "x", changed, body, f"{body}.", sign("0" * 64, {"kind": "session", "worker": 1})):
        with pytest.raises(Refused, match="was not made by this study") as caught:
            desk.sessions.session(forged)
        assert caught.value.status == 403
    with pytest.raises(Refused, match="for something else"):
        desk.sessions.enter_invited(token)
    invitation = desk.sessions.invite(7, days=1)
    assert desk.sessions.session(desk.sessions.enter_invited(invitation)) == desk.sessions.session(
        desk.sessions.enter_invited(invitation)
    )
    clock.now += 90_000
    with pytest.raises(Refused, match="has expired"):
        desk.sessions.enter_invited(invitation)
    assert opened(desk.sessions.secret, token, clock.now, "session")["worker"] == desk.sessions.session(token)[0]


def test_abandoned_seats_come_back_and_late_work_is_kept(desk, clock):
    slow = enter(desk, "slow")
    seat = desk.seats.take(slow)
    answer_all(desk, slow, seat)
    clock.now += 46 * 60
    other = desk.seats.take(enter(desk, "quick"))
    assert (other.hit, other.seat) == (seat.hit, seat.seat)
    sent = desk.submissions.submit(slow, seat.assignment)
    assert sent["is_extra"] and sent["code"]
    assert [sheet.is_extra for sheet in read_sheets(desk.store, desk.design)] == [True]


def test_late_work_counts_where_the_seat_is_free(desk, clock):
    worker = enter(desk)
    seat = desk.seats.take(worker)
    clock.now += 46 * 60
    answer_all(desk, worker, seat)
    assert not desk.submissions.submit(worker, seat.assignment)["is_extra"]


def test_answers_hold_the_seat(desk, clock):
    worker = enter(desk)
    seat = desk.seats.take(worker)
    for minute in range(5):
        clock.now += 40 * 60
        desk.ratings.rate(worker, seat.assignment, 0, 0, "quality", "good", f"c{minute}")
    assert desk.seats.take(enter(desk, "w2")).hit != seat.hit  # the least filled one


def test_a_clock_that_jumps_back_frees_nothing_and_makes_no_negative_times(desk, clock):
    worker = enter(desk)
    seat = desk.seats.take(worker)
    clock.now -= 7 * 86_400
    answer_all(desk, worker, seat)
    desk.submissions.submit(worker, seat.assignment)
    assert read_sheets(desk.store, desk.design)[0].minutes == 0


def test_all_seats_are_given_once(desk):
    workers = [enter(desk, f"w{i}") for i in range(3)]
    held = [(seat.hit, seat.seat) for worker in workers[:2] for seat in [desk.seats.take(worker)]]
    assert len(set(held)) == 2
    third = desk.seats.take(workers[2])
    desk.seats.give_back(workers[2], third.assignment)
    fourth = desk.seats.take(enter(desk, "w4"))
    assert (fourth.hit, fourth.seat) == (third.hit, third.seat)


def test_full_closed_and_capped(opened):
    desk = fill(opened(), meed2(*SMALL, "worker.cap=1"), made_items(20))
    first = enter(desk, "first")
    seat = desk.seats.take(first)
    answer_all(desk, first, seat)
    desk.submissions.submit(first, seat.assignment)
    with pytest.raises(Refused, match=r"you have done 1 tasks of this study, which is the most for one person \(1\)"):
        desk.seats.take(first)
    for name in ("b", "c", "d"):
        desk.seats.take(enter(desk, name))
    with pytest.raises(Refused, match="all seats are taken"):
        desk.seats.take(enter(desk, "e"))
    desk.store.finish()
    desk.store.finish()
    with pytest.raises(Refused, match="is closed") as caught:
        desk.seats.take(enter(desk, "f"))
    assert caught.value.status == 410


def test_the_51st_hit_is_refused(tmp_path):
    one = ("composition.items_per_hit=1", "composition.strata.ED=1", "composition.bonus={per_hit: 1, needed: 1}")
    desk = fill(Store(str(tmp_path / "s.db")), meed2(*one, "composition.raters=1"), made_items(52))
    rater = crowd_of({"honest": 1}, Opinion({}, {}))[0]
    assert work_through(desk, rater, "busy", hits=60) == 50


def test_a_worker_sees_an_item_once(opened):
    design = simple("likert", composition={"cards": "one", "items_per_hit": 5, "raters": 1})
    desk = fill(opened(), design, made_items(5))
    worker = enter(desk)
    seat = desk.seats.take(worker)
    seen = {screen.key for screen in desk.seats.screens(seat.hit, seat.seat)}
    assert len(seen) == 5
    with pytest.raises(Refused, match="you have seen what is open"):
        work = [asked for screen in desk.seats.screens(seat.hit, seat.seat) for asked in questions(design, screen)]
        assert len(work) == 5
        answer_all(desk, worker, seat, "3")
        desk.submissions.submit(worker, seat.assignment)
        desk.seats.take(worker)


def test_consent_and_questions_come_first(opened):
    onboarding = {"questions": [{"question": "Where do good ones go?", "answers": ["up", "Good"], "right": 1}]}
    design = simple("drag", onboarding=onboarding, texts={"consent": "Do you agree?"}, composition={"items_per_hit": 5})
    desk = fill(opened(), design, made_items(5))
    worker = desk.sessions.session(desk.sessions.enter("w"))[0]
    with pytest.raises(Refused, match="consent and questions come before"):
        desk.seats.take(worker)
    desk.sessions.consent(worker)
    assert desk.sessions.comprehension(worker, [0]) == {"passed": False, "left": 1, "code": "", "url": ""}
    assert desk.sessions.comprehension(worker, [1]) == {"passed": True, "left": 0, "code": "", "url": ""}
    assert desk.seats.take(worker).is_new
    other = desk.sessions.session(desk.sessions.enter("other"))[0]
    desk.sessions.comprehension(other, [0])
    desk.sessions.comprehension(other, [])
    with pytest.raises(Refused, match="in 2 attempts"):
        desk.sessions.comprehension(other, [1])


def test_bonus_is_told_only_when_all_is_placed_and_first_try_counts_if_asked(opened):
    desk = fill(opened(), meed2(*SMALL, "composition.bonus.first_try=true"), made_items(20))
    worker = enter(desk)
    seat = desk.seats.take(worker)
    screen = next(s for s in desk.seats.screens(seat.hit, seat.seat) if s.is_bonus)
    gold = screen.order.index(2)
    with pytest.raises(Refused, match="place every reply first"):
        desk.ratings.validate_bonus(worker, seat.assignment, screen.place)
    answer_all(desk, worker, seat)
    desk.ratings.rate(worker, seat.assignment, screen.place, gold, "quality", "bad", "first")
    assert desk.ratings.validate_bonus(worker, seat.assignment, screen.place) is False
    desk.ratings.rate(worker, seat.assignment, screen.place, gold, "quality", "good", "second")
    assert desk.ratings.validate_bonus(worker, seat.assignment, screen.place) is True
    assert desk.submissions.submit(worker, seat.assignment)["points"] == 2
    plain = next(s for s in desk.seats.screens(seat.hit, seat.seat) if not s.is_bonus)
    with pytest.raises(Refused):
        desk.ratings.validate_bonus(worker, seat.assignment, plain.place)


def test_sides_of_pairs_become_systems(opened):
    design = simple("ab", composition={"items_per_hit": 4, "raters": 2})
    desk = fill(opened(), design, made_items(4))
    for name in ("w1", "w2"):
        worker = enter(desk, name)
        seat = desk.seats.take(worker)
        for screen in desk.seats.screens(seat.hit, seat.seat):
            side = "first" if screen.order[0] == 0 else "second"  # always A
            desk.ratings.rate(worker, seat.assignment, screen.place, -1, "quality", side, f"c{screen.place}")
        shown = {answer["task"]: answer["value"] for answer in desk.ratings.answers(worker, seat.assignment)}
        assert set(shown.values()) == {"first", "second"} or len(shown) == 4
        desk.submissions.submit(worker, seat.assignment)
    answers = [answer for sheet in read_sheets(desk.store, design) for answer in sheet.answers]
    assert {(answer.systems, answer.value) for answer in answers} == {(("A", "B"), "first")}


def test_withdrawal_deletes_and_frees(desk):
    worker = enter(desk)
    seat = desk.seats.take(worker)
    answer_all(desk, worker, seat)
    desk.submissions.submit(worker, seat.assignment)
    desk.sessions.withdraw(worker)
    assert read_sheets(desk.store, desk.design) == []
    with pytest.raises(Refused, match="you withdrew"):
        desk.sessions.enter("w1")
    again = desk.seats.take(enter(desk, "w2"))
    assert (again.hit, again.seat) == (seat.hit, seat.seat)


def test_people_of_another_study_are_kept_out(tmp_path):
    first = fill(Store(str(tmp_path / "one.db")), meed2(*SMALL), made_items(20))
    first.sessions.enter("known")
    second = fill(
        Store(str(tmp_path / "two.db")), meed2(*SMALL, f"worker.excluded_from=[{tmp_path}/one.db]"), made_items(20)
    )
    with pytest.raises(Refused, match="did not take part in an earlier one"):
        second.sessions.enter("known")
    assert second.sessions.enter("new")


def test_many_at_once_lose_and_double_nothing(place, clock):
    """Eight threads take seats and rate: no seat twice, every answer once."""
    design = meed2("composition.items_per_hit=5", "composition.raters=2", "worker.cap=100")
    fill(Store(place), design, made_items(20))
    trouble: list[Exception] = []
    done: list[int] = []

    def work(number: int) -> None:
        own = Desk(Store(place))
        try:
            rater = crowd_of({"honest": 1}, Opinion({}, {}), number)[0]
            done.append(work_through(own, rater, f"w{number}", hits=100))
        except Exception as error:
            trouble.append(error)
        finally:
            own.store.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trouble == [] and sum(done) == 8
    store = Store(place)
    sheets = read_sheets(store, design)
    assert len({(sheet.hit, sheet.worker) for sheet in sheets}) == 8
    assert {len(sheet.answers) for sheet in sheets} == {13}  # 5 x 2 and three gold cards
    store.close()


def test_older_and_damaged_stores(tmp_path):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from empatheia_people.studies.tables import Base

    store = Store(str(tmp_path / "s.db"))
    store.migrate()
    store.migrate()
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    with pytest.raises(DataError, match="no study in sqlite"):
        store.study()
    with pytest.raises(DataError, match="make one with: empatheia study init"):
        Store(str(tmp_path / "none.db")).study()
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "bad.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        Store(str(tmp_path / "bad.db")).study()
    with pytest.raises(ConfigError, match="no store of kind 'mysql'"):
        Store("mysql://x/y")
    with pytest.raises(StoreError) as caught:
        Store("postgresql://me:secret@127.0.0.1:1/none").migrate()
    assert "secret" not in str(caught.value)


def test_a_study_is_not_written_over(desk):
    with pytest.raises(DataError, match="holds the study 'meed2' already"):
        fill(desk.store, meed2(), made_items(20))


def test_backup_while_running(tmp_path):
    desk = fill(Store(str(tmp_path / "s.db")), meed2(*SMALL), made_items(20))
    worker = enter(desk)
    answer_all(desk, worker, desk.seats.take(worker))
    desk.store.backup(tmp_path / "copy.db")
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        assert copy.execute("SELECT COUNT(*) FROM rating").fetchone() == (23,)


def test_a_locked_store_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("empatheia_people.studies.store._BUSY_SECONDS", 0.05)
    desk = fill(Store(str(tmp_path / "s.db")), meed2(*SMALL), made_items(20))
    with sqlite3.connect(tmp_path / "s.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="database is locked"):
            desk.sessions.enter("w1")
        other.execute("ROLLBACK")
    assert desk.sessions.enter("w1")
