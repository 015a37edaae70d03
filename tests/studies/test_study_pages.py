"""Studies over HTTP and in a browser: dragging, keys, touch, reload, a server that goes away."""

from __future__ import annotations

import json
import re

import pytest
from fastapi.testclient import TestClient
from made_studies import RECIPES, fill, made_items, meed2, simple
from served_studies import browsing, served

from accessibility import serious, watched
from empatheia.records.analysis import Analysis
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia_people.studies.design import read_design
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.making import make_study
from empatheia_people.studies.serving import STATIC, study_app
from empatheia_people.studies.sheets import read_sheets
from empatheia_people.studies.store import Store, StoreError

SMALL = ("composition.hits=2", "composition.raters=2", "composition.items_per_hit=3")


NOTHING = Analysis(Dialogue("", ()))


class Echo:
    """Answers with what it heard."""

    def __init__(self, name: str) -> None:
        self.name = name

    def respond(self, item, **_):
        return Reply(f"{self.name} heard: {item.turns[-1].text}", NOTHING)


@pytest.fixture()
def store(tmp_path):
    opened = Store(str(tmp_path / "s.db"))
    fill(opened, meed2(*SMALL), made_items(6))
    return opened


@pytest.fixture()
def client(store):
    with TestClient(study_app(store)) as asking:
        yield asking


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


def enter(client, **query) -> dict[str, str]:
    answer = client.post("/api/enter", json={"query": query or {"worker": "w1", "assignment": "P1"}})
    assert answer.status_code == 200, answer.text
    head = {"authorization": f"Bearer {answer.json()['token']}"}
    client.post("/api/consent", headers=head)
    return head


def rating(page, **over):
    return {
        "assignment": page["assignment"],
        "task": 0,
        "card": 0,
        "criterion": "quality",
        "value": "good",
        "client": "c",
        **over,
    }


# HTTP


def test_a_hit_over_http_and_what_it_must_not_show(client):
    head = enter(client)
    taken = client.post("/api/take", headers=head)
    assert (
        taken.headers["content-security-policy"].startswith("default-src 'none'")
        and taken.headers["cache-control"] == "no-store"
    )
    page = taken.json()
    seen = json.dumps([page, client.get("/api/study").json()]).lower()
    assert "is_gold" not in seen and '"right"' not in seen and 'needed": 3' in seen and '"systems"' not in seen
    for task in page["tasks"]:
        for card in range(len(task["cards"])):
            sent = client.put(
                "/api/rating",
                headers=head,
                json=rating(page, task=task["place"], card=card, client=f"{task['place']}{card}"),
            )
            assert sent.json() == {"version": 1, "other": False}
    assert client.post("/api/validate", headers=head, json={"assignment": page["assignment"], "task": 0}).json() == {
        "won": True
    }
    done = client.post("/api/submit", headers=head, json={"assignment": page["assignment"]}).json()
    assert done["points"] == 3 and done["paid_bonus"]
    late = client.put("/api/rating", headers=head, json=rating(page, client="late"))
    assert late.status_code == 409 and late.json()["error"]["code"] == "submitted"
    assert client.post("/api/submit", headers=head, json={"assignment": page["assignment"]}).json() == done
    assert client.get("/api/me", headers=head).json()["sent"] == 1


@pytest.mark.parametrize("token", ["", "Bearer ", "Bearer x.y", "Basic abc"])
def test_no_session_no_answer(client, token):
    for method, path in (("GET", "/api/me"), ("POST", "/api/take"), ("POST", "/api/withdraw")):
        answer = client.request(method, path, headers={"authorization": token})
        assert answer.status_code in (401, 403) and "Use the link" in answer.text.replace(
            "open your link", "Use the link"
        )


def test_bad_requests_are_told(client):
    head = enter(client)
    page = client.post("/api/take", headers=head).json()
    for over, status in (
        ({"value": "x" * 100_000}, 422),
        ({"card": 99}, 404),
        ({"task": -1}, 404),
        ({"assignment": 999}, 404),
        ({"client": ""}, 400),
        ({"card": "one"}, 400),
    ):
        answer = client.put("/api/rating", headers=head, json=rating(page, **over))
        assert answer.status_code == status, answer.text
        assert len(answer.json()["error"]["message"]) < 600
    assert client.put(
        "/api/rating",
        headers=head,
        content=b"{" * 10,
    ).status_code in (400, 415)
    assert client.put("/api/rating", headers=head, json=rating(page, value="x" * 2_000_000)).status_code == 413
    other = enter(client, worker="w2")
    assert client.put("/api/rating", headers=other, json=rating(page)).status_code == 404
    assert (
        client.post("/api/enter", json={"query": {}})
        .json()["error"]["message"]
        .startswith("the link lacks your worker id")
    )
    assert client.post(
        "/api/enter", json={"query": {"worker": "w", "assignment": "ASSIGNMENT_ID_NOT_AVAILABLE"}}
    ).json()["preview"]
    assert client.get("/../s.db").status_code == 404 and client.get("/api/export").status_code == 404


def test_a_worker_with_markup_for_a_name_is_text(client):
    assert enter(client, worker="<img src=x onerror=alert(1)>", assignment="<b>")


def test_invitations_only(tmp_path):
    store = Store(str(tmp_path / "s.db"))
    desk = fill(store, meed2(*SMALL, "worker.entry=invited"), made_items(6))
    with TestClient(study_app(store)) as client:
        assert enter(client, invitation=desk.sessions.invite(1))
        for word in ("", "forged", desk.sessions.invite(1)[:-1] + "."):
            answer = client.post("/api/enter", json={"query": {"invitation": word, "worker": "w"}})
            assert answer.status_code == 403


def test_a_store_that_is_gone_is_said_and_nothing_of_it(store, client, monkeypatch):
    head = enter(client)
    page = client.post("/api/take", headers=head).json()
    with monkeypatch.context() as broken:

        def gone(*_, **__):
            raise StoreError("postgresql://secret-host cannot be used")

        broken.setattr(Store, "_session", gone)
        answer = client.put("/api/rating", headers=head, json=rating(page))
        assert answer.status_code == 503 and "your answers stay on this page" in answer.text
        assert "secret-host" not in answer.text and answer.headers["retry-after"] == "2"
    assert client.put("/api/rating", headers=head, json=rating(page)).status_code == 200


def test_pages_load_nothing_from_elsewhere():
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"https?://|innerHTML|eval\(|document\.write|insertAdjacentHTML", text), path.name


def test_live_talks_are_kept_answered_once_and_bounded(tmp_path):
    design = read_design(
        RECIPES / "live.yaml",
        ["live.systems={one: a, two: b}", "composition.hits=2", "live.min_turns=2", "live.max_turns=2"],
    )
    made = make_study(design)
    store = Store(str(tmp_path / "s.db"))
    store.create(design, made.material, made.manifest)
    with TestClient(study_app(store, responders={"one": Echo("one"), "two": Echo("two")})) as client:
        head = enter(client)
        page = client.post("/api/take", headers=head).json()
        assert [task["kind"] for task in page["tasks"]] == ["live", "live", "compare"]
        assert '"one"' not in json.dumps(page) and '"two"' not in json.dumps(page)

        def say(task, text, client_word):
            message = {"assignment": page["assignment"], "task": task, "text": text, "client": client_word}
            return client.post("/api/say", headers=head, json=message)

        whole = {"assignment": page["assignment"]}
        for task in (0, 1):
            say(task, "I lost my dog.", "a")
            told = say(task, "I lost my dog.", "a").json()["messages"]
            assert len(told) == 2 and told[1]["text"].endswith("heard: I lost my dog.")
            if task == 0:
                client.put("/api/rating", headers=head, json=rating(page, criterion="empathy", value="4", client="e"))
                assert client.post("/api/submit", headers=head, json=whole).status_code == 409
            say(task, "It was <b>yesterday</b>.", "b")
            assert say(task, "More", "c").status_code == 409
            for criterion in ("empathy", "relevance", "fluency"):
                over = {"task": task, "criterion": criterion, "value": "4", "client": f"{task}{criterion}"}
                client.put("/api/rating", headers=head, json=rating(page, **over))
        assert (
            say(0, "", "d").status_code == 422
            and say(0, "x" * 1001, "d").status_code == 422
            and say(2, "x", "d").status_code == 404
        )
        client.put(
            "/api/rating",
            headers=head,
            json=rating(page, task=2, card=-1, criterion="compare", value="second", client="cmp"),
        )
        assert client.post("/api/submit", headers=head, json=whole).status_code == 200
        (sheet,) = read_sheets(Store(str(tmp_path / "s.db")), design)
        compared = next(answer for answer in sheet.answers if answer.criterion == "compare")
        assert compared.is_pair and set(compared.systems) == {"one", "two"} and len(sheet.answers) == 7


# in a browser


def begin(page, url, worker="w1"):
    page.goto(f"{url}/?worker={worker}&assignment=P-{worker}")
    page.get_by_role("button", name="I agree", exact=True).click()
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Next").click()
    page.wait_for_selector("text=Conversation 1/")


def drag(page, card, box):
    start, end = card.bounding_box(), box.bounding_box()
    page.mouse.move(start["x"] + 60, start["y"] + 8)
    page.mouse.down()
    page.mouse.move(start["x"] + 80, start["y"] - 10, steps=3)
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=5)
    page.mouse.up()


def all_saved(page):
    page.wait_for_selector("#saved:text-is('All answers are saved')")


def test_a_whole_hit_by_mouse_with_a_reload(store, browser):
    with served(store) as url:
        context = browser.new_context()
        page = context.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        begin(page, url)
        for number in (1, 2, 3):
            page.wait_for_selector(f"text=Conversation {number}/3")
            texts = page.locator(".card .text").all_inner_texts()
            if number == 2:
                drag(page, page.locator(".card").first, page.locator("[data-box=bad]"))
                all_saved(page)
                page.reload()
                page.wait_for_selector("text=Conversation 2/3")
                assert page.locator("[data-box=bad] .card").count() == 1  # there again
                assert sorted(page.locator(".card .text").all_inner_texts()) == sorted(texts)
                assert page.locator(".pool .card .text").all_inner_texts() == texts[1:]
            assert page.get_by_role("button", name="Next" if number < 3 else "Send").is_disabled()
            while page.locator(".pool .card").count():
                drag(page, page.locator(".pool .card").first, page.locator("[data-box=good]"))
            page.get_by_role("button", name="Bonus Validate").click()
            page.wait_for_selector("text=/You won the point|Not this time/")
            assert "gold" not in page.content().replace("gold ED", "")  # the corpus' texts of this test begin so
            page.get_by_role("button", name="Next" if number < 3 else "Send").click()
        page.wait_for_selector("text=Your code:")
        page.go_back()
        context.close()
    assert problems == []
    (sheet,) = read_sheets(Store(store.url), meed2())
    values = [answer.value for answer in sheet.answers]
    assert values.count("bad") >= 1 and values.count("good") == len(values) - values.count("bad")
    assert sheet.dwell is not None


def test_a_whole_hit_by_keyboard_alone_while_another_is_at_work(store, browser):
    with served(store) as url:
        other_context, context = browser.new_context(), browser.new_context()
        other, page = other_context.new_page(), context.new_page()
        begin(other, url, "other")
        page.goto(f"{url}/?worker=keys&assignment=K")
        page.wait_for_selector("text=I agree")

        def press(name):
            for _ in range(60):
                page.keyboard.press("Tab")
                if page.evaluate("document.activeElement.textContent") == name:
                    page.keyboard.press("Enter")
                    return
            raise AssertionError(f"no button {name} by keyboard")

        for name in ("I agree", "Next", "Next"):
            press(name)
            page.wait_for_timeout(50)
        for number in (1, 2, 3):
            page.wait_for_selector(f"text=Conversation {number}/3")
            n_cards = page.locator(".card").count()
            for _ in range(80):
                page.keyboard.press("Tab")
                if page.evaluate("document.activeElement.matches('.pool .card')"):
                    page.keyboard.press("2")
                    if page.locator("[data-box=okay] .card").count() == n_cards:
                        break
            assert page.locator("[data-box=okay] .card").count() == n_cards
            drag(other, other.locator(".card").first, other.locator("[data-box=bad]"))
            press("Next" if number < 3 else "Send")
        page.wait_for_selector("text=Your code:")
        other_context.close()
        context.close()
    (sheet,) = read_sheets(Store(store.url), meed2())
    assert {answer.value for answer in sheet.answers} == {"okay"} and sheet.points == 3


def test_by_finger_and_by_button(store, browser):
    with served(store) as url:
        context = browser.new_context(has_touch=True, viewport={"width": 400, "height": 900})
        page = context.new_page()
        begin(page, url, "finger")
        card, box = page.locator(".card .handle").first, page.locator("[data-box=okay]")
        box.scroll_into_view_if_needed()
        start, end = card.bounding_box(), box.bounding_box()
        touch = context.new_cdp_session(page)
        point = {"x": start["x"] + 8, "y": start["y"] + 20}
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
        for step in range(1, 6):
            to = {"x": end["x"] + 30, "y": start["y"] + (end["y"] + 40 - start["y"]) * step / 5}
            touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [to]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        page.wait_for_selector("[data-box=okay] .card")
        page.locator(".pool .card").first.get_by_role("button", name="Bad").click()
        page.wait_for_selector("[data-box=bad] .card")
        all_saved(page)
        context.close()


def test_what_was_dropped_while_the_server_was_away_is_sent_later(store, browser, tmp_path):
    context = browser.new_context()
    page = context.new_page()
    with served(store) as url:
        begin(page, url)
    port = int(url.rsplit(":", 1)[1])
    drag(page, page.locator(".card").first, page.locator("[data-box=good]"))
    page.wait_for_selector("text=is kept on this page")
    again = Store(store.url)
    with served(again, port):
        all_saved(page)
        assert page.locator("#trouble").is_hidden()
        page.reload()
        page.wait_for_selector("[data-box=good] .card")
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_a_hit(store, browser, scheme):
    with served(store) as url:
        context = browser.new_context(bypass_csp=True, color_scheme=scheme)
        watched(context)
        page = context.new_page()
        page.goto(f"{url}/?worker=w1&assignment=P-w1")
        page.get_by_role("button", name="I agree", exact=True).wait_for()
        found = serious(page)
        begin(page, url)
        found += serious(page)
        drag(page, page.locator(".card").first, page.locator("[data-box=bad]"))
        all_saved(page)
        found += serious(page)
        context.close()
    assert found == []


def test_what_was_dropped_while_postgresql_was_gone_is_sent_later(postgres, browser):
    postgres.empty()
    store = Store(postgres.address)
    fill(store, meed2(*SMALL), made_items(6))
    context = browser.new_context()
    page = context.new_page()
    with served(store) as url:
        begin(page, url)
        drag(page, page.locator(".card").first, page.locator("[data-box=good]"))
        all_saved(page)
        postgres.stop()
        try:
            drag(page, page.locator(".pool .card").first, page.locator("[data-box=bad]"))
            page.wait_for_selector("text=is kept on this page")
            assert "5432" not in page.content() and "postgres" not in page.content().lower()
        finally:
            postgres.start()
        all_saved(page)
        page.reload()
        page.wait_for_selector("[data-box=bad] .card")
        assert page.locator("[data-box=good] .card").count() == 1
    context.close()


@pytest.mark.parametrize("protocol", ["likert", "ab"])
def test_scales_and_pairs_by_number_keys(tmp_path, browser, protocol):
    store = Store(str(tmp_path / "s.db"))
    design = simple(
        protocol,
        criteria=[{"name": "empathy"}, {"name": "fluency"}],
        composition={"items_per_hit": 2, "raters": 1, "cards": "one" if protocol == "likert" else "pair"},
        texts={"consent": "Do you agree?"},
    )
    fill(store, design, made_items(4))
    with served(store) as url:
        context = browser.new_context()
        page = context.new_page()
        page.goto(url)
        page.get_by_role("button", name="I agree", exact=True).click()
        page.get_by_role("button", name="Next").click()
        for number in (1, 2):
            page.wait_for_selector(f"text=Conversation {number}/2")
            page.keyboard.press("2")
            page.keyboard.press("Tab")
            page.locator("fieldset").nth(1).locator("input").nth(0).focus()
            page.keyboard.press("1")
            page.get_by_role("button", name="Next" if number == 1 else "Send").click()
        page.wait_for_selector("text=Your code:")
        context.close()
    (sheet,) = read_sheets(Store(store.url), design)
    assert len(sheet.answers) == 4
    if protocol == "likert":
        assert {(a.criterion, a.value) for a in sheet.answers} == {("empathy", "2"), ("fluency", "1")}


@pytest.mark.parametrize("said", ["My dog ran away today.", "😀😀 cafe\u0301 👩🏽‍🌾 𝓶𝔂 dog\nran away, مرحبا 🏳️‍🌈!"])
def test_turns_are_annotated_and_words_marked(tmp_path, browser, said):
    dialogues = tmp_path / "d.jsonl"
    dialogues.write_text(json.dumps({"id": "d", "turns": [said, "Oh no, where to?"]}) + "\n")
    design = read_design(RECIPES / "turn_annotation.yaml", ["composition.items_per_hit=1", "worker.entry=open"])
    made = make_study(design, [str(dialogues)])
    store = Store(str(tmp_path / "s.db"))
    store.create(design, made.material, made.manifest)
    with served(store) as url:
        context = browser.new_context()
        page = context.new_page()
        page.goto(url)
        page.get_by_role("button", name="I agree", exact=True).click()
        page.get_by_role("button", name="Next").click()
        page.get_by_role("button", name="Next").click()
        page.wait_for_selector("text=Turn 1, speaker")
        page.locator("select").select_option("sad")
        words = page.locator(".words").first
        words.get_by_role("button", name="ran").click()
        words.get_by_role("button", name="ran").press("ArrowRight")
        page.keyboard.press("Space")
        all_saved(page)
        page.reload()
        page.wait_for_selector("text=Turn 1, speaker")
        marked = words.locator("[aria-pressed=true]").all_inner_texts()
        assert [word.strip(",") for word in marked] == ["ran", "away"]
        for name in ("emotional_reactions", "interpretations", "explorations"):
            page.locator(f"fieldset[data-question='1-{name}'] input[value='1']").check()
        page.get_by_role("button", name="Send").click()
        page.wait_for_selector("text=Your code:")
        context.close()
    (sheet,) = read_sheets(Store(store.url), design)
    found = {answer.criterion: answer.value for answer in sheet.answers}
    (span,) = json.loads(found["causes"])
    assert found["emotion"] == "sad" and said[slice(*span)].strip(",") == "ran away"
    assert Desk(Store(store.url)).ratings.answers(1, sheet.assignment)
