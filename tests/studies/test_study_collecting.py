"""Two-person dialogues: labels, pairing, turns, drop-outs, nothing of the partner told, the official format."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter

import pytest
from fastapi.testclient import TestClient
from made_studies import RECIPES
from served_studies import browsing, served

from empatheia.errors import DataError
from empatheia.records.analysis import Analysis
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia_people.studies.collected import collection_record, encoded, export_dialogues, read_collected, split_of
from empatheia_people.studies.collecting import Collection
from empatheia_people.studies.design import read_design
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.items import Material
from empatheia_people.studies.links import Refused
from empatheia_people.studies.manifest import Manifest
from empatheia_people.studies.serving import study_app
from empatheia_people.studies.store import Store
from empatheia_research.corpora import empathetic_dialogues

SITUATION = "I lost my keys, and then my temper."


def collecting(store: Store, *overrides: str) -> Collection:
    store.create(read_design(RECIPES / "collect.yaml", list(overrides)), Material((), ()), Manifest(()))
    return Collection(Desk(store))


@pytest.fixture()
def rooms(opened) -> Collection:
    return collecting(opened())


def come(rooms: Collection, name: str, situation: str = SITUATION) -> int:
    worker = rooms.desk.sessions.session(rooms.desk.sessions.enter(name))[0]
    rooms.desk.sessions.consent(worker)
    rooms.rounds.join(worker)
    if situation:
        rooms.rounds.write(worker, rooms.snapshot(worker)["offered"][0], situation)
    return worker


def talk(rooms: Collection, *workers: int, n: int = 4, chats: int = 2) -> None:
    for chat in range(chats):
        for turn in range(n):
            speaker = next(w for w in workers if rooms.snapshot(w)["my_turn"])
            rooms.say(speaker, f"Turn {turn} of chat {chat}, fine.", f"{chat}-{turn}")
        if n < rooms.setup.max_turns:
            rooms.finish(workers[0])


def test_a_pair_talks_twice_and_gets_codes(rooms):
    one, two = come(rooms, "one"), come(rooms, "two")
    shown = rooms.snapshot(one)
    assert (shown["state"], shown["chat"], shown["role"], shown["my_turn"]) == ("chat", 1, "speaker", True)
    talk(rooms, one, two)
    done = [rooms.snapshot(worker) for worker in (one, two)]
    assert [page["state"] for page in done] == ["done", "done"] and done[0]["code"] != done[1]["code"]
    first, second = read_collected(rooms.store)
    assert (first.id, second.id) == ("hit:0_conv:0", "hit:0_conv:1") and {first.author, second.author} == {one, two}
    assert [worker for worker, _ in first.utterances] == [one, two, one, two]
    assert [worker for worker, _ in second.utterances] == [two, one, two, one]


def test_the_rules_of_a_conversation(rooms):
    one, two = come(rooms, "one"), come(rooms, "two")
    with pytest.raises(Refused, match="partner's turn"):
        rooms.say(two, "Me first.", "a")
    rooms.say(one, "Hi.", "a")
    rooms.say(one, "Hi.", "a")  # sent again
    assert len(rooms.snapshot(one)["messages"]) == 1
    with pytest.raises(Refused, match="partner's turn"):
        rooms.say(one, "And more.", "b")
    for text, told in (("", "has 0"), (" \0 ", "has 0"), ("x" * 1001, "1,001")):
        with pytest.raises(Refused, match=told):
            rooms.say(two, text, "c")
    with pytest.raises(Refused, match="has 1 messages; it can end from 4 on"):
        rooms.finish(two)
    for turn in range(7):
        rooms.say(two if turn % 2 == 0 else one, "Go on.", f"t{turn}")
    page = rooms.snapshot(one)
    assert page["chat"] == 2 and page["role"] == "listener" and page["messages"] == []  # forced at the 8th
    stranger = come(rooms, "stranger")
    with pytest.raises(Refused, match=r"cannot be done now \(state waiting\)"):
        rooms.say(stranger, "Hello?", "x")


def test_situations_and_labels_are_checked(rooms):
    worker = come(rooms, "one", "")
    offered = rooms.snapshot(worker)["offered"]
    for label, situation, told in (
        (offered[0], "too short", "has 2 words; accepted: 3 to 100"),
        (offered[0], "word " * 101, "has 101 words"),
        ("furious!", SITUATION, "was not offered"),
    ):
        with pytest.raises(Refused, match=told):
            rooms.rounds.write(worker, label, situation)
    rooms.rounds.write(worker, offered[1], "Call me at 0171 555 1234 or me@example.org please.")
    assert rooms.snapshot(worker)["label"] == offered[1]


def test_nobody_meets_themselves(rooms):
    one = come(rooms, "one")
    assert come(rooms, "one", "") == one and rooms.snapshot(one)["state"] == "waiting"
    rooms.rounds.join(one)
    assert rooms.snapshot(one)["state"] == "waiting"


def test_who_leaves_sends_the_partner_back_with_what_they_wrote(rooms):
    one, two = come(rooms, "one"), come(rooms, "two", "My cat climbed the tree.")
    rooms.say(one, "Hi.", "a")
    rooms.leave(one)
    assert rooms.snapshot(one)["state"] == "left"
    page = rooms.snapshot(two)
    assert (page["state"], page["situation"]) == ("waiting", "My cat climbed the tree.")
    come(rooms, "three")
    assert rooms.snapshot(two)["state"] == "chat" and rooms.snapshot(two)["role"] == "speaker"


def test_silence_slowness_and_waiting_in_vain(rooms, clock):
    one, two = come(rooms, "one"), come(rooms, "two")
    clock.now += 80
    rooms.rounds.beat(one)
    clock.now += 20
    assert rooms.tick().touched == {one, two}
    assert (rooms.snapshot(two)["state"], rooms.snapshot(one)["state"]) == ("left", "waiting")
    clock.now += 301
    rooms.tick()
    assert rooms.snapshot(one)["state"] == "left" and rooms.snapshot(one)["code"]  # paid for waiting
    three, four = come(rooms, "three"), come(rooms, "four")
    for _ in range(3):
        clock.now += 61
        rooms.rounds.beat(three), rooms.rounds.beat(four)
    rooms.tick()
    assert rooms.snapshot(three)["state"] == "left" and rooms.snapshot(four)["state"] == "waiting"


def test_a_partner_who_gives_no_sign_is_not_paired(rooms, clock):
    come(rooms, "gone")
    clock.now += 91
    assert rooms.snapshot(come(rooms, "here"))["state"] == "waiting"


def test_labels_stay_even_while_people_drop_out(tmp_path, clock):
    short = ("collect.min_turns=1", "collect.max_turns=1", "collect.labels=[a, b, c, d, e, f, g, h]")
    rooms = collecting(Store(str(tmp_path / "s.db"), clock), *short)
    dice = random.Random(3)
    for number in range(60):
        worker = come(rooms, f"w{number}", "")
        rooms.rounds.write(worker, dice.choice(rooms.snapshot(worker)["offered"]), SITUATION)
        if dice.random() < 0.3:
            rooms.leave(worker)
            continue
        page = rooms.snapshot(worker)
        if page["state"] == "chat":
            pair = [worker, next(w for w in range(1, worker) if rooms.snapshot(w).get("state") == "chat")]
            talk(rooms, *pair, n=1)
    counts = Counter(each.label for each in read_collected(rooms.store))
    every = [counts[label] for label in "abcdefgh"]
    assert max(every) - min(every) <= 2 and sum(every) > 25


def test_returning_workers_are_offered_what_they_have_not_had(tmp_path):
    short = ("collect.min_turns=1", "collect.max_turns=1", "collect.labels=[a, b, c, d, e, f, g]")
    rooms = collecting(Store(str(tmp_path / "s.db")), *short, "collect.cap=12", "collect.cap_after=4")
    had = []
    for round_ in range(6):
        worker = come(rooms, "returning", "")
        offered = rooms.snapshot(worker)["offered"]
        assert len(offered) == 3
        if round_ < 5:
            assert not set(offered) & set(had)  # 7 labels: after four rounds three are left
        rooms.rounds.write(worker, offered[0], SITUATION)
        had.append(offered[0])
        talk(rooms, worker, come(rooms, f"other{round_}"), n=1)
    with pytest.raises(Refused, match=r"you have had 12 conversations, the most for one person \(12\)"):
        come(rooms, "returning", "")


def test_many_people_no_triple_no_leak(tmp_path, clock):
    rooms = collecting(Store(str(tmp_path / "s.db"), clock))
    dice = random.Random(1)
    secrets_, seen = {}, {}
    workers = []
    for number in range(40):
        worker = come(rooms, f"w{number}", f"Secret situation number {number} of mine.")
        workers.append(worker)
        secrets_[worker] = (f"number {number} of", rooms.snapshot(worker)["label"])
    for step in range(900):
        worker = dice.choice(workers)
        page = rooms.snapshot(worker)
        seen.setdefault(worker, []).append(json.dumps(page))
        if page["state"] == "chat" and page["my_turn"]:
            rooms.say(worker, "Fine words here.", f"{step}")
        if step == 450:
            rooms = Collection(Desk(Store(rooms.store.url, clock)))  # the server was killed and started again
    for worker, pages in seen.items():
        for other, (words, _) in secrets_.items():
            assert other == worker or not any(words in page for page in pages)
    found = read_collected(rooms.store)
    for each in found:
        speakers = [who for who, _ in each.utterances]
        assert len(set(speakers)) <= 2 and len(speakers) <= 8 and speakers[0] == each.author
        assert all(a != b for a, b in itertools.pairwise(speakers))
    assert sum(each.is_complete for each in found) > 20


def test_export_loads_with_the_projects_reader(rooms, tmp_path):
    odd = ['Well, "yes", and no', "_comma_ typed\nin two lines", "<b>شكرا</b> 😀", "a|b, c"]
    for number in range(5):
        one, two = come(rooms, f"a{number}", f"I lost {number}, really, I did."), come(rooms, f"b{number}")
        for chat in range(2):
            for turn, text in enumerate(odd):
                speaker = one if rooms.snapshot(one)["my_turn"] else two
                rooms.say(speaker, text, f"{chat}{turn}")
            rooms.finish(one)
    left = come(rooms, "c")
    come(rooms, "d")
    rooms.say(left, "Alone.", "x")
    export_dialogues(rooms.store, tmp_path)
    loaded = {}
    for split in ("train", "valid", "test"):
        path = tmp_path / "empatheticdialogues" / f"{split}.csv"
        if path.is_file():
            corpus = empathetic_dialogues.read(path, split, strict=True)
            loaded |= {dialogue.id: (split, dialogue) for dialogue in corpus.dialogues}
    assert len(loaded) == 10
    for each in read_collected(rooms.store):
        if not each.is_complete:
            continue
        split, dialogue = loaded[each.id]
        assert dialogue.emotion == each.label and dialogue.situation == each.situation
        assert split == split_of(each.author, rooms.desk.design)
        assert [turn.text for turn in dialogue.turns] == [odd[0], "_ comma_ typed in two lines", odd[2], odd[3]]
    records = [json.loads(line) for line in (tmp_path / "dialogues.jsonl").read_text().splitlines()]
    assert len(records) == 10 and records[0]["turns"] == odd
    by_author: dict[int, set[str]] = {}
    for record in records:
        by_author.setdefault(record["author"], set()).add(record["split"])
    assert all(len(splits) == 1 for splits in by_author.values())
    whole = export_dialogues(rooms.store, tmp_path / "all", incomplete=True)
    assert {path.stem for path in whole} - {"dialogues"} >= {split for split, _ in loaded.values()}
    found = collection_record(rooms.store)
    assert (found["conversations"], found["incomplete"], found["mean_turns"]) == (10, 1, 4)


def test_a_split_without_conversations_has_no_file(tmp_path):
    rooms = collecting(Store(str(tmp_path / "s.db")), "collect.split=[1, 0, 0]")
    talk(rooms, come(rooms, "one"), come(rooms, "two"))
    folder = tmp_path / "out" / "empatheticdialogues"
    folder.mkdir(parents=True)
    (folder / "test.csv").write_text("of an earlier export")
    export_dialogues(rooms.store, tmp_path / "out")
    assert [path.name for path in folder.iterdir()] == ["train.csv"]
    assert len(empathetic_dialogues.load("train", tmp_path / "out")) == 2


def test_new_people_are_offered_the_labels_least_chosen(tmp_path):
    """Whoever comes is offered the three least chosen so far, a label in use counting as chosen."""
    short = ("collect.min_turns=1", "collect.max_turns=1", "collect.labels=[a, b, c, d, e]")
    rooms = collecting(Store(str(tmp_path / "s.db")), *short)
    chosen = Counter(dict.fromkeys("abcde", 0))
    for number in range(14):
        one = come(rooms, f"n{number}", "")
        offered = rooms.snapshot(one)["offered"]
        assert sorted(chosen[label] for label in offered) == sorted(chosen.values())[:3]
        rooms.rounds.write(one, offered[0], SITUATION)
        chosen[offered[0]] += 1
    assert max(chosen.values()) - min(chosen.values()) <= 1


def test_nothing_to_export_is_told(rooms, tmp_path):
    with pytest.raises(DataError, match="no conversation is finished yet"):
        export_dialogues(rooms.store, tmp_path)
    assert encoded("a, b") == "a_comma_ b"


def test_who_withdraws_is_in_no_export(rooms, tmp_path):
    one, two = come(rooms, "one"), come(rooms, "two")
    talk(rooms, one, two)
    rooms.desk.sessions.withdraw(two)
    assert read_collected(rooms.store) == []


def test_a_system_in_place_of_the_second_person(tmp_path):
    class Kind:
        def respond(self, item, **_):
            return Reply(f"I see: {item.turns[-1].text}", Analysis(Dialogue("", ())))

    store = Store(str(tmp_path / "s.db"))
    collecting(store, "collect.partner=kind", "worker.entry=open", "collect.max_turns=4")
    with TestClient(study_app(store, responders={"kind": Kind()})) as client:
        token = client.post("/api/enter", json={"query": {"visitor": "v"}}).json()["token"]
        client.post("/api/consent", headers={"authorization": f"Bearer {token}"})
        with client.websocket_connect("/api/room") as socket:
            socket.send_json({"token": token})
            page = pages(socket, "offered")
            socket.send_json({"do": "write", "label": page["offered"][0], "situation": SITUATION, "client": "w"})
            assert pages(socket, "chat")["is_machine"]
            for turn in range(2):
                socket.send_json({"do": "say", "text": f"Hello {turn}", "client": f"s{turn}"})
                page = pages(socket, "chat" if turn == 0 else "done", n=2 if turn == 0 else None)
        assert page["state"] == "done"
    (only,) = read_collected(Store(store.url))
    assert [text for _, text in only.utterances] == ["Hello 0", "I see: Hello 0", "Hello 1", "I see: Hello 1"]


def pages(socket, state, n=None):
    """The next page of that state (and number of messages)."""
    for _ in range(20):
        told = socket.receive_json()
        page = told.get("page", {})
        if page.get("state") == state and (n is None or len(page.get("messages", ())) == n):
            return page
    raise AssertionError(f"no page {state}")


def test_words_on_the_wire_that_are_none(tmp_path):
    store = Store(str(tmp_path / "s.db"))
    collecting(store, "worker.entry=open")
    with TestClient(study_app(store)) as client:
        for hello in ("{}", "[]", "{", json.dumps({"token": "x.y"}), "x" * 70_000):
            with client.websocket_connect("/api/room") as socket:
                socket.send_text(hello)
                assert socket.receive_json()["ended"]
        token = client.post("/api/enter", json={"query": {"visitor": "v"}}).json()["token"]
        with client.websocket_connect("/api/room") as socket:
            socket.send_json({"token": token})
            assert "consent" in socket.receive_json()["error"]
            socket.send_json({"do": "dance", "client": "d"})
            assert any("unknown act 'dance'" in str(socket.receive_json()) for _ in range(4))


def test_who_writes_of_danger_is_shown_help_and_marked(tmp_path):
    store = Store(str(tmp_path / "s.db"))
    rooms = collecting(store, "worker.entry=open")
    waiting = come(rooms, "first")
    with TestClient(study_app(store)) as client:
        token = client.post("/api/enter", json={"query": {"visitor": "v"}}).json()["token"]
        client.post("/api/consent", headers={"authorization": f"Bearer {token}"})
        with client.websocket_connect("/api/room") as socket:
            socket.send_json({"token": token})
            label = pages(socket, "offered")["offered"][0]
            written = {"do": "write", "label": label, "situation": "I want to kill myself tonight.", "client": "w"}
            socket.send_json(written)
            shown = next(told["care"] for told in (socket.receive_json() for _ in range(6)) if "care" in told)
            assert len(shown) > 40
    assert Collection(Desk(Store(store.url))).snapshot(waiting)["state"] == "chat"  # nothing is blocked
    from sqlalchemy import select

    from empatheia_people.studies.tables import Participant

    with Store(store.url).read() as session:
        flags = list(session.scalars(select(Participant.flags).order_by(Participant.id)))
    assert flags == [[], ["care"]]


def test_two_browsers_collect_a_pair(tmp_path):
    store = Store(str(tmp_path / "s.db"))
    collecting(store)
    with browsing() as browser, served(store, tick_seconds=0.2) as url:
        contexts = [browser.new_context() for _ in range(2)]
        people = [context.new_page() for context in contexts]
        for number, page in enumerate(people):
            page.on("dialog", lambda dialog: dialog.accept())
            page.goto(f"{url}/?worker=w{number}&assignment=a{number}")
            page.get_by_role("button", name="I agree", exact=True).click()
            page.get_by_role("button", name="Next").click()
            page.get_by_role("button", name="Next").click()
            page.wait_for_selector("text=Choose a feeling")
            page.locator("input[name=label]").first.check()
            page.locator("textarea").fill(f"I lost key {number}, at home.")
            page.get_by_role("button", name="Go on").click()
        for chat in (1, 2):
            for page in people:
                page.wait_for_selector(f"text=Conversation {chat} of 2")
            order = people if chat == 1 else people[::-1]
            for turn in range(4):
                page = order[turn % 2]
                page.wait_for_selector("text=It is your turn.")
                if (chat, turn) == (1, 2):
                    page.reload()
                    page.wait_for_selector("text=It is your turn.")
                    assert page.locator(".bubbles li").count() == 2
                page.locator("textarea").fill(f"<i>Turn {turn}</i>, chat {chat}")
                page.get_by_role("button", name="Say").click()
                page.wait_for_selector(f".bubbles li:nth-child({turn + 1})")
            assert "I lost key" not in order[1].content()
            order[0].wait_for_selector("button:has-text('Finish this conversation'):not([disabled])")
            order[0].get_by_role("button", name="Finish this conversation").click()
        for page in people:
            page.wait_for_selector("text=Your code:")
        for context in contexts:
            context.close()
    export_dialogues(Store(store.url), tmp_path / "out")
    texts = [
        turn.text
        for path in sorted((tmp_path / "out" / "empatheticdialogues").iterdir())
        for dialogue in empathetic_dialogues.read(path, path.stem, strict=True).dialogues
        for turn in dialogue.turns
    ]
    assert sorted(texts) == sorted(f"<i>Turn {turn}</i>, chat {chat}" for chat in (1, 2) for turn in range(4))
