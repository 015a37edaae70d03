"""A served language model: many conversations at once in order, a journal that saves money, tokens and cost."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import pytest

from empatheia.errors import ConfigError, DataError, EndpointError
from empatheia.records.dialogue import Example, Turn
from empatheia.resources.chat_endpoint import ChatEndpoint, Ledger, Prices, in_order
from empatheia.text.prompts import Hints
from empatheia.voices.language_endpoint import EndpointReplies

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))
from chat_server import ChatServer


def example(text: str, conversation: str = "a") -> Example:
    return Example((Turn("speaker", text),), "the gold reply", conversation, 1, "furious")


def echo(body: dict) -> str:
    return f"Listener: you said {body['messages'][-1]['content']}"


def replies(server: ChatServer, **options) -> EndpointReplies:
    client = {"api_key": "", "timeout": 5.0, "sleep": lambda seconds: None, "retries": options.pop("retries", 2)}
    return EndpointReplies(ChatEndpoint("llm", server.url, **client), **options)


def test_results_keep_the_order_and_several_are_under_way():
    running, most, lock = 0, 0, threading.Lock()

    def slow(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05 if number % 4 == 0 else 0.005)
        with lock:
            running -= 1
        return number

    assert list(in_order(slow, range(20), workers=4)) == list(range(20))
    assert 1 < most <= 4
    with pytest.raises(ConfigError, match="workers is 0"):
        list(in_order(slow, range(2), workers=0))


def test_after_a_failure_nothing_new_is_begun():
    begun = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 2:
            raise ValueError("two")
        return number

    with pytest.raises(ValueError, match="two"):
        list(in_order(work, range(1000), workers=2))
    assert len(begun) < 20


def test_conversations_are_answered_in_order_and_booked():
    with ChatServer(echo) as server:
        asked = replies(server, prices=Prices(1.0, 10.0), workers=4)
        pairs = [(example(f"text {i}", f"talk {i // 2}"), None) for i in range(10)]
        answers = list(asked.stream(pairs, max_tokens=20))
    assert [answer.reply for answer in answers] == [f"you said text {i}" for i in range(10)]
    assert answers[0].usage.cost == pytest.approx((100 * 1.0 + 10 * 10.0) / 1e6)
    total = asked.ledger.total
    assert (total.answers, total.prompt_tokens, total.completion_tokens) == (10, 1000, 100)
    assert total.cost == pytest.approx(10 * answers[0].usage.cost)
    by_conversation = asked.ledger.conversations
    assert {name: usage.answers for name, usage in by_conversation.items()} == {f"talk {i}": 2 for i in range(5)}
    assert all(usage.cost == pytest.approx(2 * answers[0].usage.cost) for usage in by_conversation.values())
    assert all(body["max_tokens"] == 20 and body["temperature"] == 0 for body in server.requests)
    sent = json.dumps(server.requests)
    assert "the gold reply" not in sent and "furious" not in sent


def test_hints_reach_the_model_and_the_key_is_sent_but_never_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-123")
    with ChatServer(lambda body: "my key is secret-123") as server:
        endpoint = ChatEndpoint("llm", server.url, key_variable="MY_KEY")
        asked = EndpointReplies(endpoint, journal=tmp_path / "answers.jsonl")
        answer = asked.reply(example("hi"), Hints("sad", ("the dog",), "consoling"))
    system = server.requests[0]["messages"][0]["content"]
    assert "sad" in system and "the dog" in system and "consoling" in system
    assert server.headers[0]["Authorization"] == "Bearer secret-123"
    assert "secret" not in answer.reply and "secret" not in (tmp_path / "answers.jsonl").read_text()


def test_what_was_answered_is_not_asked_again(tmp_path):
    journal = tmp_path / "answers.jsonl"
    pairs = [(example(f"text {i}", str(i)), None) for i in range(6)]
    with ChatServer(echo, [200] * 0) as server:
        first = list(replies(server, journal=journal).stream(pairs[:4]))
        n_asked = len(server.requests)
        with journal.open("a") as file:
            file.write('{"key": "cut')  # a kill in the middle of a line
        again = replies(server, journal=journal, prices=Prices(1, 1))
        answers = list(again.stream(pairs))
        assert [a.reply for a in answers[:4]] == [a.reply for a in first] and len(server.requests) == n_asked + 2
        assert [a.is_kept for a in answers] == [True] * 4 + [False] * 2
        assert again.ledger.total.answers == 6 and again.ledger.total.cost == pytest.approx(6 * 110 / 1e6)
        other = replies(server, journal=journal)
        list(other.stream(pairs[:1], max_tokens=7))  # other settings are another question
        other.reply(pairs[0][0], Hints("sad"))  # and so is another prompt
        assert len(server.requests) == n_asked + 4
    assert len(journal.read_text().splitlines()) == 8


def test_the_same_question_is_not_under_way_twice():
    def slow(body: dict) -> str:
        time.sleep(0.05)
        return "yes"

    with ChatServer(slow) as server:
        asked = replies(server, workers=8)
        answers = list(asked.stream([(example("same"), None)] * 8))
    assert len(server.requests) < 8 and {answer.reply for answer in answers} == {"yes"}
    usage = asked.ledger.total  # what was paid, not more
    assert (usage.answers, usage.tries, usage.prompt_tokens) == (8, len(server.requests), 100 * len(server.requests))


def test_a_journal_is_paid_once_however_often_it_answers(tmp_path):
    pairs = [(example("same", str(i)), None) for i in range(3)]
    with ChatServer(echo) as server:
        for _ in range(2):
            asked = replies(server, journal=tmp_path / "answers.jsonl", workers=1)
            answers = list(asked.stream(pairs))
            assert [answer.usage.tries for answer in answers] == [1, 0, 0]
            assert asked.ledger.total.prompt_tokens == 100
    assert len(server.requests) == 1


def test_half_a_character_in_an_answer_is_no_reason_to_stop(tmp_path):
    """JSON may hold one half of a surrogate pair, which no file can."""
    body = (
        b'{"choices": [{"message": {"content": "Well \\ud83d done."}, "finish_reason": "\\ud83d"}], "model": "\\ud83d"}'
    )
    with ChatServer(echo, [body]) as server:
        answer = replies(server, journal=tmp_path / "answers.jsonl").reply(example("hi"))
    assert answer.reply == "Well ? done."
    assert replies(server, journal=tmp_path / "answers.jsonl").reply(example("hi")).is_kept


def test_a_journal_that_cannot_be_written_keeps_nobody_waiting(tmp_path):
    def slow(body: dict) -> str:
        time.sleep(0.2)
        return "yes"

    (tmp_path / "folder").mkdir()
    with ChatServer(slow) as server:
        asked = replies(server, workers=2, journal=tmp_path / "folder" / "answers.jsonl")
        (tmp_path / "folder").rmdir()
        failed = []

        def ask() -> None:
            with pytest.raises(OSError, match="answers"):
                asked.reply(example("same"))
            failed.append(True)

        threads = [threading.Thread(target=ask, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
    assert failed == [True, True]


def test_a_failure_keeps_what_was_answered_and_says_where(tmp_path):
    journal = tmp_path / "answers.jsonl"

    def answer(body: dict) -> str:
        return "" if "five" in json.dumps(body) else "fine"

    with ChatServer(answer) as server:
        asked = replies(server, workers=1, journal=journal, retries=0)
        pairs = [(example(text), None) for text in ("one", "two")]
        list(asked.stream(pairs))
        server.failures = [401]
        with pytest.raises(
            EndpointError, match=r"refused with 401.*so far are in .*answers\.jsonl; repeat the command to continue"
        ):
            list(asked.stream([*pairs, (example("three"), None)]))
        assert [a.reply for a in asked.stream([*pairs, (example("three"), None)])] == ["fine"] * 3
        assert asked.reply(example("five")).reply == ""  # an empty answer is one
    assert len(server.requests) == 5


def test_failures_that_may_pass_are_tried_again_and_counted():
    with ChatServer(echo, [429, 503]) as server:
        answer = replies(server).reply(example("hi"))
    assert answer.reply == "you said hi" and answer.usage.tries == 3


def test_servers_with_the_newer_name_of_the_limit_are_understood():
    refusal = (400, {}, b'{"error": {"message": "Unsupported parameter: max_tokens. Use max_completion_tokens."}}')
    with ChatServer(echo, [refusal]) as server:
        asked = replies(server)
        assert asked.reply(example("hi"), max_tokens=9).reply == "you said hi"
        asked.reply(example("ho"), max_tokens=9)
    assert [sorted(body.keys() & {"max_tokens", "max_completion_tokens"}) for body in server.requests] == [
        ["max_tokens"],
        ["max_completion_tokens"],
        ["max_completion_tokens"],
    ]
    with ChatServer(echo, [(400, {}, b'{"error": "no such field"}')]) as server, pytest.raises(EndpointError):
        replies(server).reply(example("hi"), max_tokens=9)


def test_fields_of_the_request_can_be_added_and_left_out():
    with ChatServer(echo) as server:
        replies(server, request={"top_p": 0.5, "temperature": None}).reply(example("hi"), max_tokens=9)
    assert server.requests[0]["top_p"] == 0.5 and "temperature" not in server.requests[0]


def test_a_file_that_is_no_journal_is_left_alone(tmp_path):
    other = tmp_path / "notes.jsonl"
    other.write_text('{"mine": 1}\n')
    with ChatServer(echo) as server:
        with pytest.raises(DataError, match=r"notes\.jsonl:1: not an answer of a language model"):
            replies(server, journal=other)
        with pytest.raises(DataError, match="does not exist"):
            replies(server, journal=tmp_path / "nowhere" / "a.jsonl")
    assert other.read_text() == '{"mine": 1}\n'


def test_prices_are_the_callers():
    ledger = Ledger()
    assert ledger.add("a", 10, 5).cost is None and ledger.total.cost is None
    with pytest.raises(ConfigError, match="accepted: 0 or more"):
        Prices(-1, 0)
