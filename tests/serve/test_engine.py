"""The queue: joins what waits, answers everybody, keeps its bounds."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

import pytest
import torch

from empatheia.errors import DataError
from empatheia.giving_way import Abandoned, give_way
from empatheia.listener import Listener
from empatheia.listener.steps.settings import DecodingSettings
from empatheia.records.dialogue import Dialogue
from empatheia.serve.engine import Engine, _Steps
from empatheia.serve.faults import ApiError
from empatheia.serve.measures import Measures
from empatheia.serve.settings import Batching
from empatheia.voices.reflection.voice import ReflectionVoice
from empatheia.voices.voice import Request


class Work:
    """Doubles numbers; keeps the batches it was given, and waits at a gate."""

    def __init__(self, fails: int | None = None) -> None:
        self.batches: list[list[int]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.fails = fails

    def __call__(self, items):
        self.gate.wait(10)
        self.batches.append(list(items))
        if self.fails in items:
            raise DataError(f"{self.fails} cannot be doubled.")
        return [2 * one for one in items]


def run(play, **settings):
    async def played():
        engine = Engine(Batching(**settings), Measures())
        try:
            return await play(engine)
        finally:
            await engine.close()

    return asyncio.run(played())


async def behind_a_gate(engine, work):
    """Something that runs until the gate opens; what is asked meanwhile waits."""
    work.gate.clear()
    first = asyncio.ensure_future(engine.ask("first", [0], work))
    while engine.n_waiting or not engine._busy:
        await asyncio.sleep(0.001)
    return first


def test_what_waits_is_joined_and_everybody_gets_their_own():
    work = Work()

    async def play(engine):
        first = await behind_a_gate(engine, work)
        others = [asyncio.ensure_future(engine.ask("same", [n, n + 100], work)) for n in range(1, 5)]
        await asyncio.sleep(0.01)
        work.gate.set()
        return await first, await asyncio.gather(*others)

    first, others = run(play)
    assert first == [0]
    assert others == [[2 * n, 2 * n + 200] for n in range(1, 5)]
    assert work.batches == [[0], [1, 101, 2, 102, 3, 103, 4, 104]]


def test_groups_and_sizes_are_kept_apart():
    work = Work()

    async def play(engine):
        first = await behind_a_gate(engine, work)
        asked = [engine.ask(group, [n], work) for n, group in enumerate("ababaaa", 1)]
        others = asyncio.gather(*asked, engine.ask(None, [8], work), engine.ask(None, [9], work))
        await asyncio.sleep(0.01)
        work.gate.set()
        await first
        return await others

    assert run(play, size=3) == [[2 * n] for n in range(1, 10)]
    assert work.batches == [[0], [1, 3, 5], [2, 4], [6, 7], [8], [9]]


def test_one_that_fails_takes_nobody_with_it():
    work = Work(fails=2)

    async def play(engine):
        first = await behind_a_gate(engine, work)
        others = asyncio.gather(*(engine.ask("same", [n], work) for n in (1, 2, 3)), return_exceptions=True)
        await asyncio.sleep(0.01)
        work.gate.set()
        await first
        return await others

    one, two, three = run(play)
    assert (one, three) == ([2], [6])
    assert isinstance(two, DataError)


def test_a_full_queue_says_when_to_come_again():
    work = Work()

    async def play(engine):
        first = await behind_a_gate(engine, work)
        others = [asyncio.ensure_future(engine.ask("same", [n], work)) for n in (1, 2)]
        await asyncio.sleep(0.01)
        with pytest.raises(ApiError) as error:
            await engine.ask("same", [3], work)
        work.gate.set()
        await asyncio.gather(first, *others)
        return error.value

    error = run(play, queue=2)
    assert error.status_code == 429 and int(error.headers["Retry-After"]) >= 1


def test_who_leaves_is_not_computed():
    work = Work()

    async def play(engine):
        first = await behind_a_gate(engine, work)
        leaving = asyncio.ensure_future(engine.ask("same", [1], work))
        staying = asyncio.ensure_future(engine.ask("same", [2], work))
        await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.sleep(0.01)
        work.gate.set()
        await asyncio.gather(first, staying)
        return engine.is_idle

    run(play)
    assert work.batches == [[0], [2]]


def test_bulk_lets_others_through():
    work = Work()

    async def play(engine):
        first = await behind_a_gate(engine, work)
        bulk = asyncio.ensure_future(engine.ask("bulk", list(range(100, 106)), work, is_bulk=True))
        await asyncio.sleep(0.01)
        others = [asyncio.ensure_future(engine.ask(None, [n], work)) for n in (1, 2)]
        await asyncio.sleep(0.01)
        work.gate.set()
        await asyncio.gather(first, *others)
        return await bulk

    assert run(play, size=2) == [2 * n for n in range(100, 106)]
    assert work.batches.index([2]) < work.batches.index([104, 105])


def test_a_stream_comes_in_parts_and_stops_when_its_reader_leaves():
    told = threading.Event()

    def speak(hand_out, left):
        for number in range(1000):
            if left.wait(0.005):
                told.set()
                return
            hand_out(number)

    async def play(engine):
        stream = engine.stream(speak)
        heard = [await anext(stream) for _ in range(3)]
        await stream.aclose()
        return heard

    assert run(play) == [0, 1, 2]
    assert told.is_set()


def test_a_stream_that_fails_says_so():
    def speak(hand_out, left):
        hand_out(1)
        raise DataError("no more.")

    async def play(engine):
        return [part async for part in engine.stream(speak)]

    with pytest.raises(DataError, match="no more"):
        run(play)


def test_closing_answers_what_waits():
    work = Work()

    async def play(engine):
        first = await behind_a_gate(engine, work)
        others = [asyncio.ensure_future(engine.ask("same", [n], work)) for n in range(5)]
        await asyncio.sleep(0.01)
        closing = asyncio.ensure_future(engine.close())
        work.gate.set()
        await closing
        assert engine.is_idle
        return await asyncio.gather(first, *others)

    assert run(play) == [[0], *([2 * n] for n in range(5))]


def in_steps(gate, told=None):
    """Work that gives way until a gate opens."""

    def work(items):
        try:
            while not gate.wait(0.002):
                give_way()
        except BaseException as error:
            told.append(type(error))
            raise
        return items

    return work


def test_what_takes_long_lets_others_pass(monkeypatch):
    """One text of 40 KB stopped everybody for as long as it took."""
    monkeypatch.setattr("empatheia.serve.engine._PATIENCE", 0.0)
    gate, work = threading.Event(), Work()

    async def play(engine):
        long = asyncio.ensure_future(engine.ask(None, [0], in_steps(gate)))
        short = await asyncio.gather(*(engine.ask("same", [n], work) for n in (1, 2)), engine.ask(None, [3], work))
        was_done = long.done()
        gate.set()
        return short, was_done, await long

    assert run(play) == ([[2], [4], [6]], False, [0])


def test_a_short_text_waits_for_no_long_one(monkeypatch):
    """A short one that had let the long one pass could go on only when that had ended."""
    monkeypatch.setattr("empatheia.serve.engine._PATIENCE", 0.0)
    gate, ended = threading.Event(), []
    short, long = Dialogue.of("I lost my keys."), Dialogue.of("I want to die " * 20_000)

    def work(name):
        def compute(items):
            while name == "short" and not gate.wait(0.002):
                give_way()
            ended.append(name)
            return items

        return compute

    async def play(engine):
        first = asyncio.ensure_future(engine.ask(None, [short], work("short")))
        while not engine._busy:
            await asyncio.sleep(0.001)
        second = asyncio.ensure_future(engine.ask(None, [long], work("long")))
        await engine.ask(None, [short], work("other"))
        gate.set()
        await asyncio.gather(first, second)

    run(play)
    assert ended == ["other", "short", "long"]


def test_one_who_passes_may_fail_alone(monkeypatch):
    monkeypatch.setattr("empatheia.serve.engine._PATIENCE", 0.0)
    gate = threading.Event()

    async def play(engine):
        long = asyncio.ensure_future(engine.ask(None, [0], in_steps(gate)))
        with pytest.raises(DataError, match="cannot be doubled"):
            await engine.ask(None, [1], Work(fails=1))
        gate.set()
        return await long

    assert run(play) == [0]


@pytest.mark.parametrize("group", [None, "same"])
def test_work_ends_when_all_who_asked_have_left(group):
    told = []

    async def play(engine):
        asked = [asyncio.ensure_future(engine.ask(group, [n], in_steps(threading.Event(), told))) for n in (1, 2)]
        while not engine._busy:
            await asyncio.sleep(0.001)
        for one in asked:
            one.cancel()
        assert await engine.ask(None, [3], Work()) == [6]
        return engine.is_idle

    run(play)
    assert set(told) == {Abandoned}


def _analyses(tiny_model):
    listener = Listener.load("listener")
    return lambda: listener.analyze([f"My {n} dogs ran away and I feel alone." for n in range(100)])


def _reflections(tiny_model):
    voice = ReflectionVoice()
    asked = [Request(Dialogue.of("I feel alone."))] * 3
    return lambda: voice.propose(asked, DecodingSettings.model_validate({}), None)


def _replies(tiny_model):
    listener = Listener.load(tiny_model)
    return lambda: listener.respond("I feel alone.", care=False, max_new_tokens=40)


def _beams(tiny_model):
    listener = Listener.load(tiny_model)
    return lambda: listener.respond("I feel alone.", care=False, strategy="beam", num_beams=4, max_new_tokens=40)


@pytest.mark.parametrize("long_work", [_analyses, _reflections, _replies, _beams])
def test_the_models_let_others_pass_and_end_when_left(long_work, tiny_model, monkeypatch):
    """The check of a short text took as long as whatever stood before it, though its client had left."""
    monkeypatch.setattr("empatheia.serve.engine._PATIENCE", 0.0)
    compute = long_work(tiny_model)
    alone, told, gate = compute(), [], threading.Event()

    def long(items):
        gate.wait(10)
        try:
            found = compute()
            told.append("long")
            return [found]
        except BaseException as error:
            told.append(type(error))
            raise

    def short(items):
        told.append("short")
        torch.manual_seed(len(told))  # what passes leaves the draws of the one who waits alone
        compute()
        return items

    async def play(engine):
        first = asyncio.ensure_future(engine.ask(None, [0], long))
        while not engine._busy:
            await asyncio.sleep(0.001)
        passing = asyncio.ensure_future(engine.ask(None, [1], short))
        await asyncio.sleep(0.01)
        gate.set()
        (found,) = await first
        await passing
        gate.clear()
        while not engine.is_idle:
            await asyncio.sleep(0.001)
        left = asyncio.ensure_future(engine.ask(None, [0], long))
        while not engine._busy:
            await asyncio.sleep(0.001)
        left.cancel()
        await asyncio.sleep(0.01)
        gate.set()
        await engine.ask(None, [1], Work())
        return found

    found = run(play)
    assert told == ["short", "long", Abandoned]
    assert found == alone


def test_a_batch_ends_only_when_nobody_waits_for_it():
    here, gone = (SimpleNamespace(left=threading.Event()) for _ in range(2))
    gone.left.set()
    _Steps([here, gone], lambda most: None)()
    here.left.set()
    with pytest.raises(Abandoned):
        _Steps([here, gone], lambda most: None)()
