"""Heads and the component: which text is asked about, one record a relation, the same alone and among others."""

from __future__ import annotations

import dataclasses
import json

import pytest
from tiny_inferences import Axes, Echo, save_encoder, table

from empatheia import Analyzer, Dialogue
from empatheia.analysis.component import COMPONENTS
from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.records.dialogue import CauseAnnotation, Turn
from empatheia.taxonomy import RELATIONS
from empatheia_research.corpora import atomic
from empatheia_research.understanding.inferences.cache import CachedInferences, fill_cache
from empatheia_research.understanding.inferences.heads import (
    HEADS,
    asked_about,
    clean_head,
    events,
    person_head,
    phrases,
    plain_head,
)
from empatheia_research.understanding.inferences.index import build_index
from empatheia_research.understanding.inferences.nearest import NearestInferences
from empatheia_research.understanding.inferences.provider import Filtered, NoInferences
from empatheia_research.understanding.inferences.turns import InferencesOfTurns, open_provider


def talk(*texts: str, identity: str = "d", first: str = "speaker") -> Dialogue:
    roles = ("speaker", "listener") if first == "speaker" else ("listener", "speaker")
    return Dialogue(identity, tuple(Turn(roles[i % 2], text) for i, text in enumerate(texts)))


LONG = talk("I lost my job.", "Oh no!", "My dog died, too.", "I am sorry.", "I'm so sad now.")


class Causes:
    """Says for each speaker turn what it is given."""

    part, name = "causes", "made up"

    def __init__(self, turns=(0, 2)):
        self.turns = turns

    def annotate(self, dialogues, *, batch_size=32, progress=None):
        return [
            tuple(
                CauseAnnotation(dialogue.id, i, tuple(t for t in self.turns if t <= i))
                for i, turn in enumerate(dialogue.turns)
                if turn.role == "speaker"
            )
            for dialogue in dialogues
        ]


def test_words_of_a_head():
    assert plain_head("PersonX gives PersonY PersonX's ___") == "i gives them my something"
    assert plain_head("PersonX is sad because of PersonZ") == "i am sad because of somebody"
    assert person_head("I've lost my job and he told her mother") == "PersonX has lost PersonX's job and " + (
        "PersonY told PersonY's mother"
    )
    assert person_head("india is in asia") == "india is in asia"
    assert clean_head("I'm SO sad, can't sleep!") == "i am so sad , can not sleep !"
    assert events("") == [] and events("i lost my job . ok . my dog died .") == [
        "i lost my job . ok . my dog died .",
        "i lost my job .",
        "my dog died .",
    ]
    assert phrases("the , !") == [] and "old dog" in phrases("my old dog")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("turn", ("i am so sad now .",)),
        ("causes", ("i lost my job . my dog died , too .",)),
        ("last_cause", ("my dog died , too .",)),
        ("each", ("i lost my job .", "my dog died , too .")),
        ("context", ("i lost my job . oh no ! my dog died , too . i am sorry . i am so sad now .",)),
    ],
)
def test_forms_of_heads(head, expected):
    """Spec 2.4: IMAGINE's causes joined by a blank, and the other forms."""
    assert asked_about(LONG, 4, head, (2, 0, 2)).heads == expected
    assert set(HEADS) == {"turn", "causes", "last_cause", "each", "context"}


@pytest.mark.parametrize(
    ("no_cause", "expected"),
    [
        ("whole", "i lost my job . oh no ! my dog died , too ."),
        ("last_speaker", "my dog died , too ."),
        ("all_speaker", "i lost my job . my dog died , too ."),
    ],
)
def test_no_cause(no_cause, expected):
    """Check 21: nothing found, so the whole context by default; counted."""
    asked = asked_about(LONG, 2, "causes", (), no_cause)
    assert asked.heads == (expected,) and not asked.has_causes
    assert asked_about(LONG, 2, "causes", (4,), no_cause) == asked  # a later turn is no cause
    component = InferencesOfTurns(Echo(), head="causes", causes=Causes(()), no_cause=no_cause)
    component.annotate([LONG])
    assert component.report()["turns without a cause"] == component.report()["turns"] == 3


def test_later_turns_are_not_read():
    cut = talk(*[turn.text for turn in LONG.turns[:3]])
    for head in HEADS:
        whole = InferencesOfTurns(Echo(), head=head, causes=Causes()).annotate([LONG])[0]
        short = InferencesOfTurns(Echo(), head=head, causes=Causes()).annotate([cut])[0]
        assert tuple(record for record in whole if record.turn <= 2) == short


def test_gold_labels_are_not_read():
    marked = dataclasses.replace(LONG, emotion="sad", situation="It was a bad week.")
    assert InferencesOfTurns(Echo()).annotate([marked]) == InferencesOfTurns(Echo()).annotate([LONG])


def test_a_record_for_every_relation():
    """What cannot be given is there without tails and says why."""
    (records,) = InferencesOfTurns(Echo(), n=2).annotate([LONG])
    assert [(r.turn, r.relation) for r in records] == [(turn, name) for turn in (0, 2, 4) for name in RELATIONS]
    by_relation = {r.relation: r for r in records if r.turn == 2}
    assert by_relation["xReact"].tails == ("my dog died , too . xReact 0", "my dog died , too . xReact 1")
    assert by_relation["xReact"].absent == ""
    assert by_relation["Causes"].tails == () and by_relation["Causes"].absent == "relation not covered"
    (some,) = InferencesOfTurns(Echo(), relations="events").annotate([LONG])
    assert {r.relation for r in some} == {"Causes", "xReason"}
    assert InferencesOfTurns(Echo()).annotate([]) == []
    (quiet,) = InferencesOfTurns(Echo()).annotate([talk("Hello?", first="listener")])
    assert quiet == ()
    (mute,) = InferencesOfTurns(Echo()).annotate([talk("   ")])
    assert {r.absent for r in mute} == {"nothing to ask about"}


def test_alone_as_among_others(tmp_path):
    """Batched = single, with a real encoder behind; progress counts conversations."""
    sample = atomic.load("all", root=atomic.sample_root())
    build_index(sample, save_encoder(tmp_path / "encoder"), tmp_path / "index")
    dialogues = [LONG, talk("happy"), talk("Hello?", first="listener"), talk(*["my dog died"] * 9), LONG]
    component = InferencesOfTurns.load(tmp_path / "index", minimum=0.2, phrase_minimum=0.2)
    counted = []
    together = component.annotate(dialogues, batch_size=3, progress=counted.append)
    assert sum(counted) == 5 and any(record.tails for record in together[0])
    assert [component.annotate([dialogue], batch_size=2)[0] for dialogue in dialogues] == together
    again = InferencesOfTurns.load(tmp_path / "index", minimum=0.2, phrase_minimum=0.2)
    assert again.annotate(dialogues) == together


def test_causes_are_a_components(tmp_path):
    with pytest.raises(ConfigError, match=r"head=causes needs the model that finds causes.*--causes"):
        InferencesOfTurns(Echo(), head="causes")
    with pytest.raises(ConfigError, match="head is 'cause'; accepted: turn, causes"):
        InferencesOfTurns(Echo(), head="cause", causes=Causes())
    with pytest.raises(ConfigError, match="no_cause is 'x'; accepted: whole"):
        InferencesOfTurns(Echo(), head="causes", causes=Causes(), no_cause="x")
    with pytest.raises(MissingResourceError, match="no-such-model"):
        InferencesOfTurns.load("none", head="causes", causes="no-such-model")
    (records,) = InferencesOfTurns(Echo(), head="each", causes=Causes()).annotate([LONG])
    last = next(r for r in records if r.turn == 4 and r.relation == "xReact")
    assert last.tails[:2] == ("i lost my job . xReact 0", "my dog died , too . xReact 0") and len(last.tails) == 5


def test_a_cache_of_causes_is_read_without_the_causes(tmp_path):
    """What was asked about the causes is found by conversation, turn and text."""
    made = InferencesOfTurns(Echo(), head="causes", causes=Causes())
    fill_cache(Echo(), made.asked([(1, LONG)]), tmp_path / "c.jsonl")
    read = InferencesOfTurns.load(tmp_path / "c.jsonl")
    assert read.annotate([LONG]) == made.annotate([LONG])
    (other,) = read.annotate([dataclasses.replace(LONG, id="e")])
    assert {r.absent for r in other if r.turn > 0} == {"not in the cache"}
    blocked = InferencesOfTurns.load(tmp_path / "c.jsonl", blocked=["dog"])
    (records,) = blocked.annotate([LONG])
    assert isinstance(blocked.provider, Filtered)
    assert {r.absent for r in records if r.turn == 4 and r.relation != "Causes"} == {"blocked"}


def test_what_opens(tmp_path):
    assert isinstance(open_provider("none"), NoInferences)
    build_index(table("east|xReact|warm", folder=tmp_path), "words", tmp_path / "index")
    index = open_provider(tmp_path / "index", minimum=0.1, n_heads=3)
    assert isinstance(index, NearestInferences) and (index.minimum, index.n_heads) == (0.1, 3)
    fill_cache(index, [asked_about(LONG, 0)], tmp_path / "c.jsonl")
    assert isinstance(open_provider(tmp_path / "c.jsonl"), CachedInferences)
    for place, error, match in (
        (tmp_path / "nowhere.jsonl", MissingResourceError, "no file"),
        (tmp_path / "table.tsv", CheckpointError, "is not a cache"),
        ("no-such-provider", MissingResourceError, "--build-index atomic"),
        ("inferences", MissingResourceError, "--build-index atomic"),
    ):
        with pytest.raises(error, match=match) as caught:
            open_provider(place)
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="has no setting minimum"):
        open_provider(tmp_path / "c.jsonl", minimum=0.3)
    with pytest.raises(ConfigError, match=r"no setting 'beams'. It has: encoder, minimum"):
        open_provider(tmp_path / "index", beams=3)


def test_the_analysis_says_what_is_absent(tmp_path):
    """The whole way: component by name, record as JSON."""
    build_index(table("PersonX's dog dies|xReact|sad", folder=tmp_path), "words", tmp_path / "index")
    assert COMPONENTS.get("inferences") is InferencesOfTurns
    found = Analyzer("inferences", models={"inferences": tmp_path / "index"}).analyze("My dog dies.")
    record = json.loads(json.dumps(found.to_dict()))["inferences"]
    assert [entry["relation"] for entry in record] == list(RELATIONS)
    assert record[0]["tails"] == ["sad"] and record[0]["head"] == "PersonX's dog dies" and "absent" not in record[0]
    assert {entry["absent"] for entry in record[1:]} == {"relation not covered"}


def test_axes_need_no_file(tmp_path):
    """A loaded encoder of one's own, in Python."""
    axes = Axes(2, lambda text: (1, 0) if "dog" in text else (0, 1))
    index = build_index(table("PersonX's dog dies|xReact|sad", folder=tmp_path), axes, tmp_path / "index")
    (records,) = InferencesOfTurns(NearestInferences(index), relations=["xReact"]).annotate([LONG])
    assert [r.tails for r in records] == [(), ("sad",), ()] and records[0].absent == "no near head"
