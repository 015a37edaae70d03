"""Commonsense as pieces; numbers in the docstrings are the checks of IMAGINE's specification, section 10."""

import json

import pytest

from empatheia.errors import ConfigError, MissingResourceError
from empatheia.records.dialogue import Dialogue, Example, Turn
from empatheia_research.side_inputs.knowledge import KnowledgeOfRelations, KnowledgeOfTypes
from empatheia_research.text.collation import EncodedExample
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.understanding.inferences.cache import fill_cache
from empatheia_research.understanding.inferences.heads import asked_about
from empatheia_research.understanding.inferences.provider import Tails, asked_relations

CAUSES = [f"c{i}" for i in range(1, 6)]
REASONS = [f"x{i}" for i in range(1, 6)]
TOKENIZER = DialogueTokenizer.train_words([" ".join(("happy sad rest lose", *CAUSES, *REASONS))])
CLS = TOKENIZER.cls_id


def ids(text):
    return TOKENIZER.encode(text).ids


class Said:
    """A provider that says the same of every text, and remembers the texts."""

    name, source, stride = "said", "nobody", 8

    def __init__(self, tails=None, mark="one"):
        self.tails = tails or {}
        self.mark = mark
        self.heads = []

    def relations(self):
        return tuple(self.tails)

    def fingerprint(self):
        return self.mark

    def infer(self, heads, relations=(), n=5, *, batch_size=32, progress=None):
        self.heads += heads
        names = asked_relations(relations, n)
        return [{name: Tails(name, tuple(self.tails.get(name, ())[:n])) for name in names} for _ in heads]


def talk(*texts, identity="d"):
    turns = tuple(Turn(("speaker", "listener")[i % 2], text) for i, text in enumerate(texts))
    return Example(turns, None, identity, len(turns))


def item(**extra):
    return EncodedExample([CLS], [-1], [0], [0], [0], [-1], extra=extra)


def read(side, *examples, **extra):
    items = [item(**extra) for _ in examples]
    side.add(examples, items)
    return items


def with_provider(side, provider):
    side._sources = (None, provider)
    side.provider = "said"
    return side


def test_sequences_of_types():
    """Check 16: CLS c1 ... c5 x1 ... x5 for events; affect has no CLS."""
    provider = Said({"Causes": CAUSES, "xReason": REASONS, "xReact": ["happy", "sad"]})
    side = with_provider(KnowledgeOfTypes(TOKENIZER), provider)
    affect, behaviour, physical, events = read(side, talk("i lost"))[0].extra["knowledge"]
    assert events == [CLS, *(ids(name)[0] for name in (*CAUSES, *REASONS))]
    assert affect == ids("happy sad") and behaviour == physical == [CLS]


def test_sequences_of_relations():
    """Specification 4.2: four behind CLS, the reaction alone; "to", "none" and unknown words go."""
    provider = Said({"xIntent": ["to rest", "to none"], "xReact": ["happy", "zzz"], "xEffect": ["to lose a zzz"]})
    side = with_provider(KnowledgeOfRelations(TOKENIZER), provider)
    found = read(side, talk("i lost"))[0].extra["knowledge"]
    assert found == [[CLS, *ids("rest")], [CLS], [CLS], [CLS, *ids("lose")], ids("happy")]


def test_what_is_asked_about():
    """The last speaker turn (CEM), or what the side input for causes chose (IMAGINE)."""
    talks = talk("A.", "B.", "C!")
    for head, expected in (("turn", "c !"), ("causes", "a . c !"), ("last_cause", "c !"), ("context", "a . b . c !")):
        provider = Said({"xReact": ["sad"]})
        read(with_provider(KnowledgeOfTypes(TOKENIZER, head=head), provider), talks, cause_turns=(0, 2))
        assert provider.heads == [expected]
    provider = Said({"xReact": ["sad"]})
    read(with_provider(KnowledgeOfRelations(TOKENIZER), provider), talk("A.", "B."))
    assert provider.heads == ["a ."]


def test_equal_texts_are_asked_once_and_the_same_everywhere():
    provider = Said({"xReact": ["sad"]})
    side = with_provider(KnowledgeOfRelations(TOKENIZER), provider)
    many = read(side, talk("A."), talk("B."), talk("A."))
    assert provider.heads == ["a .", "b ."]
    assert many[0].extra["knowledge"] == many[2].extra["knowledge"] == read(side, talk("A."))[0].extra["knowledge"]


def test_nothing_is_valid_and_said():
    """Without a source all sequences are empty, masked, and the answer says so."""
    side = KnowledgeOfRelations(TOKENIZER)
    items = read(side, talk("A."))
    assert items[0].extra["knowledge"] == [[CLS]] * 4 + [[]]
    assert "no source of commonsense" in items[0].extra["doubts"][0]
    batch = side.collate([*items, item()], TOKENIZER.pad_id, 4)
    assert batch["knowledge_mask"].tolist() == [[[True]] * 4 + [[False]]] * 2
    assert batch["knowledge_ids"][:, 4].eq(TOKENIZER.pad_id).all()
    silent = read(with_provider(KnowledgeOfRelations(TOKENIZER), Said()), talk("A."))
    assert silent[0].extra["doubts"] == ["the source of commonsense has nothing about this text"]


@pytest.fixture
def cache(tmp_path):
    provider = Said({"xReact": ["sad"], "xIntent": ["rest"]})
    turns = [asked_about(Dialogue.of("A.", id="d"), 0, row=1)]
    fill_cache(provider, turns, tmp_path / "c.jsonl")
    return str(tmp_path / "c.jsonl")


def test_a_cache_answers_first(cache):
    """The form ``empatheia infer`` writes; what it lacks the provider is asked, if there is one."""
    alone = KnowledgeOfRelations(TOKENIZER, cache=cache)
    known, new = read(alone, talk("a ."), talk("B.", identity="other"))
    assert known.extra["knowledge"][4] == ids("sad") and "doubts" not in known.extra
    assert new.extra["knowledge"][4] == [] and "only texts of the cache" in new.extra["doubts"][0]
    both = KnowledgeOfRelations(TOKENIZER, cache=cache)
    provider = Said({"xReact": ["happy"]})
    both._opened()
    both._sources = (both._sources[0], provider)
    known, new = read(both, talk("A."), talk("B."))
    assert (known.extra["knowledge"][4], new.extra["knowledge"][4]) == (ids("sad"), ids("happy"))
    assert provider.heads == ["b ."]


def test_a_cache_of_another_provider_is_refused(cache, monkeypatch):
    monkeypatch.setattr(KnowledgeOfRelations, "_provider", lambda self: Said(mark="two"))
    side = KnowledgeOfRelations(TOKENIZER, cache=cache, provider="sample")
    with pytest.raises(ConfigError, match="was not written by the provider"):
        read(side, talk("A."))


def test_a_saved_one_reads_the_same_and_tells_what_changed(cache, monkeypatch):
    """Settings lie in the model folder; a source that is gone or another is a doubt, not a crash."""
    side = KnowledgeOfTypes(TOKENIZER, provider="sample", n=3)
    first = read(side, talk("I lost my job."))[0]
    settings = json.loads(json.dumps(side.settings()))
    again = read(KnowledgeOfTypes(TOKENIZER, **settings), talk("I lost my job."))[0]
    assert first.extra == again.extra and settings["fingerprint"]
    gone = KnowledgeOfTypes(TOKENIZER, **{**settings, "provider": "no-such-index"})
    assert "cannot be used" in read(gone, talk("I lost my job."))[0].extra["doubts"][0]
    monkeypatch.setattr(KnowledgeOfTypes, "_provider", lambda self: Said({"xReact": ["sad"]}, mark="new"))
    other = read(KnowledgeOfTypes(TOKENIZER, **settings), talk("I lost my job."))[0]
    assert "than in training" in other.extra["doubts"][0]


def test_blocked_words_and_limits():
    provider = Said({"xReact": ["sad", "happy"]})
    side = with_provider(KnowledgeOfRelations(TOKENIZER, blocked=["sad"]), provider)
    assert read(side, talk("A."))[0].extra["knowledge"][4] == ids("happy")
    side = with_provider(KnowledgeOfRelations(TOKENIZER, max_pieces=1), provider)
    assert read(side, talk("A."))[0].extra["knowledge"][4] == ids("sad")
    with pytest.raises(ConfigError, match="n is 0; accepted: 1 or more"):
        KnowledgeOfRelations(TOKENIZER, n=0)
    for settings in ({"cache": "none/such.jsonl"}, {"provider": "no-such-index"}):
        with pytest.raises(MissingResourceError, match="empatheia infer"):
            KnowledgeOfRelations(TOKENIZER, **settings)
