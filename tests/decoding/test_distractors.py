"""Distractors: the specification's checks for every kind, what each kind promises, and what cannot be had."""

import numpy as np
import pytest
import torch
from tiny_focus import DIALOGUES, TURNS, WORDS, estimator, masked_model, words_component

from empatheia.analysis.targets import ScoredTargets, Targets, named
from empatheia.errors import CheckpointError, ConfigError, DataError, DecodingError, MissingResourceError
from empatheia.metrics.word_forms import base_form
from empatheia.records.dialogue import Dialogue
from empatheia_research.decoding import estimator_distractors
from empatheia_research.decoding.distractors import (
    DISTRACTORS,
    Distractors,
    GivenDistractors,
    RandomDistractors,
    cased_like,
    exchanged,
)
from empatheia_research.decoding.estimator_distractors import EstimatorDistractors
from empatheia_research.decoding.masked_distractors import MaskedDistractors
from empatheia_research.decoding.turn_pool import TurnPool, WordList, turn_pool, wording
from empatheia_research.decoding.word_exchange import exchange
from empatheia_research.understanding.words.evidence import PAPER, REPO

KINDS = ("gee own", "gee bart", "gee gpt2", "gee repo own", "gee repo bart", "gee repo gpt2", "masked")


def make(kind, seed=0, **options) -> Distractors:
    if kind == "masked":
        return MaskedDistractors(*masked_model(), seed=seed, vocabulary=WORDS, **options)
    form = "repo" if "repo" in kind else "clean"
    if form == "clean":
        options.setdefault("vocabulary", WORDS)
    return EstimatorDistractors(estimator(kind.split()[-1]), form, seed=seed, **options)


@pytest.fixture(scope="module")
def targets() -> list[Targets]:
    return ScoredTargets(words_component(), k=3).find(DIALOGUES)


@pytest.fixture(scope="module")
def kinds() -> dict[str, Distractors]:
    return {kind: make(kind) for kind in KINDS}


def outside(text, own):
    """What stands between the targets."""
    parts, done = [], 0
    for span in own.in_order:
        parts.append(text[done : span.start])
        done = span.end
    return [*parts, text[done:]]


@pytest.mark.parametrize("kind", KINDS)
def test_only_target_words_differ(kinds, targets, kind):
    """Checks of the specification: world 0 is the input, others differ, and only at the targets, each of them."""
    for own, contrast in zip(targets, kinds[kind].make(targets), strict=True):
        assert contrast.texts[0] == own.text and len(set(contrast.texts)) == 3
        for text, words in zip(contrast.texts[1:], contrast.replaced, strict=True):
            assert all(new.lower() != old.lower() for new, old in zip(words, own.words, strict=True))
            if "repo" not in kind:  # pieces may be written onto the word before
                assert text == exchanged(own, words)
                expected = own.text
                for span, word in zip(reversed(own.in_order), reversed(_in_order(own, words)), strict=True):
                    expected = expected[: span.start] + word + expected[span.end :]
                assert text == expected and outside(own.text, own)[0] == text[: own.in_order[0].start]


def _in_order(own, words):
    return [word for _, word in sorted(zip((s.start for s in own.spans), words, strict=True))]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "repo" not in kind])
def test_whole_words_in_the_case_of_the_original(kinds, targets, kind):
    own = [*targets, named("DOG and Cake met keys", ["dog", "cake", "keys"])]
    for given, contrast in zip(own, kinds[kind].make(own, 4), strict=True):
        forbidden = {base_form(word) for word in given.words}
        for words in contrast.replaced:
            for new, old in zip(words, given.words, strict=True):
                assert new.lower() in WORDS.words and base_form(new) not in forbidden
                assert (new.isupper(), new[0].isupper()) == (old.isupper(), old[0].isupper())
        for column in zip(*contrast.replaced, strict=True):
            assert len({base_form(word) for word in column}) == 3, "a place must not get one word twice"


@pytest.mark.parametrize("kind", [*KINDS, "random"])
def test_a_text_and_a_seed_decide_alone(kinds, targets, kind):
    pool = TurnPool.of(TURNS)
    own = RandomDistractors(pool) if kind == "random" else kinds[kind]
    together = own.make(targets)
    assert own.make(targets[::-1]) == together[::-1]
    for i in (0, 4, 7):
        assert own.make([targets[i]], batch_size=1) == [together[i]]
        assert own.make([targets[i]], 2)[0].texts == together[i].texts[:2], "more worlds must not change the first"
    other = RandomDistractors(pool, seed=1) if kind == "random" else make(kind, seed=1)
    assert [c.texts for c in other.make(targets)] != [c.texts for c in together]


def test_what_is_behind_a_gap_sees_the_new_words(targets):
    """The published form draws every piece with the original words before it; the clean form must not."""
    own = named("The dog and the cake and the keys", ["dog", "cake", "keys"])
    seen = []

    def scores(gaps):
        seen.extend(gaps)
        return np.zeros((len(gaps), len(WORDS.words)))

    (made,) = exchange([own], 2, WORDS, scores, seed=0, temperature=1.0)
    for gap in seen:
        assert not {"dog", "cake", "keys"} & set((gap.before + " ".join(gap.after)).split())
    last = [gap for gap in seen if gap.world == 1][-1]
    assert last.before == made.texts[0][: len(last.before)] and last.after == ("",)
    assert next(gap.after for gap in seen if gap.world == 1) == (" and the ", " and the ", "")


def test_words_are_drawn_by_their_scores():
    own = named("The dog sleeps", ["dog"])
    words = WordList.of(["cat", "dogs", "bird", "horse", "cow"])
    shares = {"bird": 0.6, "cat": 0.3, "cow": 0.1}
    with np.errstate(divide="ignore"):
        row = np.log([shares.get(word, 0.0) for word in words.words])

    def scores(gaps):
        return np.tile(row, (len(gaps), 1))

    drawn = [exchange([own], 1, words, scores, seed=s, temperature=1.0)[0].replaced[0][0] for s in range(600)]
    assert set(drawn) == set(shares)
    for word, share in shares.items():
        assert drawn.count(word) / 600 == pytest.approx(share, abs=0.07)
    pairs = [exchange([own], 3, words, scores, seed=s, temperature=1.0)[0].replaced for s in range(20)]
    assert all(sorted(word for (word,) in row) == ["bird", "cat", "cow"] for row in pairs)
    (few,) = exchange([own], 4, words, scores, seed=0, temperature=1.0)
    assert len(few.texts) == 3 and "3 can stand for 'dog'" in few.reason


@pytest.mark.parametrize("evidence", [REPO, PAPER])
def test_each_distractor_is_written_under_an_unlikely_emotion(evidence):
    own = estimator("own")
    own.evidence = evidence
    built = EstimatorDistractors(own, vocabulary=WORDS)
    targets = [named(TURNS[0], ["cake"])]
    (found,) = own.likelihoods_of([TURNS[0]])
    per_label = found.values.mean(-1) if evidence.length_norm else found.values.sum(-1)
    lowest = [built.labels[i] for i in per_label.argsort()[:3].tolist()]
    assert built._unlikely([TURNS[0]], 8) == [tuple(lowest)]
    asked = []
    label_ids = own.reader.label_ids
    own.reader.label_ids = lambda labels: asked.append(list(labels)) or label_ids(labels)
    built.make(targets, 5)
    assert [labels for labels in asked if labels[0] in lowest][-4:] == [[e] for e in (*lowest, lowest[0])]


@pytest.mark.parametrize("kind", ["own", "bart", "gpt2"])
def test_scores_of_a_gap_are_the_estimators(kind):
    """Log-probability of the first gap's word = that of the word in the text, by the estimator's own scoring."""
    own = estimator(kind)
    built = EstimatorDistractors(own, vocabulary=WORDS)
    words = built.vocabulary.words
    text = "My dog ate the"
    gaps = [estimator_distractors.Gap(0, 1, text + " ", (" now",)), estimator_distractors.Gap(0, 2, "", (" now",))]
    scores = built._scores(gaps, [("sad", "angry", "proud")], 8)
    assert np.isfinite(scores).all() and scores.shape == (2, len(words))
    names = list(built.labels)
    for word in ("cake", "lake"):
        (whole,) = own.likelihoods_of([f"{text} {word}"])
        expected = float(whole.values[names.index("sad"), -1])
        assert scores[0, words.index(word)] == pytest.approx(expected, abs=1e-4)


def test_released_form_by_hand():
    """Section 4.3: bottom-3 labels and the rest of the text, original left context, no original piece, T = 2."""
    own = estimator("own")
    built = EstimatorDistractors(own, "repo")
    target = named(TURNS[0], ["cake", "dog"])
    (pieces,) = own.reader.pieces([TURNS[0]])
    labels = built._unlikely([TURNS[0]], 8)[0]
    places = [t for t, (a, b) in enumerate(pieces.places) if TURNS[0][a:b] in ("cake", "dog")]
    calls = []
    row_logits = own.model.row_logits

    def watched(reader, sources, texts):
        calls.append((sources, texts, row_logits(reader, sources, texts)))
        return calls[-1][-1]

    own.model.row_logits = watched
    (made,) = built.others([target], 2, 8)
    sources, texts, logits = calls[-1]
    rest = [id for t, id in enumerate(pieces.ids) if t not in places]
    assert list(sources[0]) == [*own.reader.label_ids(labels)[:-1], *rest, own.reader.tokenizer.sep_id]
    assert texts[0].ids == pieces.ids  # the original text stands before every piece
    t = places[0]
    scores = logits[0, t].double().numpy().copy()
    scores[[pieces.ids[place] for place in places]] = -100
    draws = estimator_distractors.seeded(0, "repo", TURNS[0], t)
    specials = set(estimator_distractors._special_ids(own.reader))
    chosen = np.argsort(-(scores / 2 + draws.gumbel(size=len(scores))))[:2].tolist()
    assert not specials & set(chosen), "another seed, or this shows nothing"
    word = own.reader.tokenizer.decode([chosen[0]], raw=True)
    assert made.replaced[0][target.words.index(TURNS[0][slice(*pieces.places[t])])] == word


def test_pieces_that_begin_no_word_are_written_onto_the_word_before():
    own = estimator("bart")
    built = EstimatorDistractors(own, "repo")
    target = named("My  dog ate", ["dog", "ate"])
    (pieces,) = own.reader.pieces(["My  dog ate"])
    tokenizer = own.reader.tokenizer
    new = {}
    for t, (a, b) in enumerate(pieces.places):
        if "My  dog ate"[a:b] in ("dog", "ate"):
            new[t] = tokenizer.convert_tokens_to_ids("s" if "My  dog ate"[a:b] == "dog" else "Ġcake")
    words, glued = zip(*(built._word(target, pieces, span, new) for span in target.spans), strict=True)
    assert estimator_distractors._joined(target, words, glued) == "Mys cake"


def test_random_turns_of_a_fixed_pool(targets):
    pool = TurnPool.of([*TURNS, TURNS[0].upper(), "Yes!", "yes", "  "])
    assert len(pool.texts) == len(TURNS) + 1  # the same words in another case are the same turn
    built = RandomDistractors(pool)
    for own, contrast in zip(targets, built.make(targets, 4), strict=True):
        assert contrast.texts[0] == own.text and len(set(map(wording, contrast.texts))) == 4
        assert set(contrast.texts[1:]) <= set(pool.texts)
    without = Targets(TURNS[0].lower().replace(".", "!"), ())
    for seed in range(30):  # never the text itself, in any spelling; it needs no target words
        assert TURNS[0] not in RandomDistractors(pool, seed).make([without], 6)[0].texts
    with pytest.raises(DecodingError, match=r"only 2 of 3 distractors possible.*ask for 3 worlds"):
        RandomDistractors(TurnPool.of(["one", "two", "three"])).make([Targets("Two.", ())], 4)
    with pytest.raises(DecodingError, match="no distractor possible"):
        RandomDistractors(TurnPool.of(["one"])).make([Targets("One.", ())])


def test_default_pool_without_a_corpus_is_the_sample(monkeypatch, tmp_path):
    monkeypatch.setenv("EMPATHEIA_DATA", str(tmp_path))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path))
    turn_pool.cache_clear()
    pool = turn_pool()
    assert pool.name == "sample/train" and len(pool.texts) > 50 and len(pool.words.words) > 200
    assert "dont" not in WordList.of(["dont", "don't", "the", "ox", "Bread"]).words
    contrast = RandomDistractors().make([Targets("Yes.", ())])[0]
    assert contrast.kind == "random (sample/train, seed 0)" and "Yes." not in contrast.texts[1:]
    with pytest.raises(MissingResourceError):
        turn_pool("empathetic_dialogues")
    with pytest.raises(ConfigError, match="no pool 'sampl'"):
        turn_pool("sampl")
    turn_pool.cache_clear()


def test_a_corpus_that_cannot_be_read_is_told_and_the_sample_taken(monkeypatch, tmp_path, caplog):
    (tmp_path / "empatheticdialogues").mkdir()
    (tmp_path / "empatheticdialogues" / "train.csv").write_text("garbage,1\n")
    monkeypatch.setenv("EMPATHEIA_DATA", str(tmp_path))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path))
    turn_pool.cache_clear()
    try:
        assert turn_pool().name == "sample/train"
        assert "turns of the bundled sample" in caplog.text and "header is 'garbage,1'" in caplog.text
        with pytest.raises(DataError, match="header is 'garbage,1'"):
            turn_pool("empathetic_dialogues")
    finally:
        turn_pool.cache_clear()


def test_given_texts_and_words():
    own = named("My Dog ate the cake.", ["dog", "cake"])
    (contrast,) = GivenDistractors(["I failed.", "my dog ate the cake", "I won."]).make([own])
    assert contrast.texts == (own.text, "I failed.", "I won.") and contrast.replaced == ()
    (contrast,) = GivenDistractors(words={"DOG": ["cat", "bird"]}).make([own])
    assert contrast.texts[1:] == ("My Cat ate the cake.", "My Bird ate the cake.")
    assert contrast.replaced == (("Cat", "cake"), ("Bird", "cake"))
    with pytest.raises(DecodingError, match=r"only 1 of 2 distractors possible.*2 texts were given"):
        GivenDistractors(["I failed.", "My dog ate the cake!"]).make([own])
    with pytest.raises(DecodingError, match=r"only 1 of 2.*1 different texts"):
        GivenDistractors(words={"dog": ["dog", "cat"]}).make([own])
    with pytest.raises(DecodingError, match=r"no target word 'exam'.*Dog, cake"):
        GivenDistractors(words={"exam": ["test"]}).make([own])
    with pytest.raises(ConfigError, match="either"):
        GivenDistractors()


def test_the_history_stays_as_it_is(kinds):
    dialogue = Dialogue.of("My cat ran  away!", "Oh\tno", TURNS[0], id="x", emotion="sad")
    own = Targets(TURNS[0], tuple(type(s)(2, s.start, s.end) for s in named(TURNS[0], ["cake"]).spans), 2)
    (contrast,) = kinds["gee own"].make([own])
    worlds = contrast.dialogues(dialogue)
    assert worlds[0] is dialogue
    for world, text in zip(worlds[1:], contrast.texts[1:], strict=True):
        assert world.turns[:2] == dialogue.turns[:2] and world.turns[2].text == text
        assert world.id == "", "what is filed under the true conversation must not be taken for another"
    with pytest.raises(DecodingError, match="does not hold the turn"):
        contrast.dialogues(Dialogue.of("Something else", "a", "b"))


@pytest.mark.parametrize("kind", ["gee own", "gee repo own", "masked"])
def test_nothing_to_exchange(kinds, kind):
    with pytest.raises(DecodingError, match="no distractor possible for 'Yes!': it has no target word"):
        kinds[kind].make([Targets("Yes!", ())])
    good = named(TURNS[0], ["cake"])
    assert kinds[kind].make([Targets("Yes!", ()), good], strict=False)[0] is None
    assert kinds[kind].make([Targets("Yes!", ()), good], strict=False)[1] == kinds[kind].make([good])[0]
    with pytest.raises(DecodingError, match="1 world"):
        kinds[kind].make([good], 1)


def test_fewer_than_asked():
    few = make("gee own", vocabulary=WordList.of(["cake", "cakes", "lake", "train"]))
    own = named(TURNS[0], ["cake"])
    assert {word for (word,) in few.make([own])[0].replaced} == {"lake", "train"}
    with pytest.raises(DecodingError, match=r"only 2 of 3 distractors possible.*2 can stand for 'cake'.*3 worlds"):
        few.make([own], 4)


@pytest.mark.parametrize("kind", ["gee own", "gee repo own", "gee gpt2", "masked"])
def test_long_texts(kinds, kind):
    own = named("word " * 90 + "my dog ate the cake.", ["dog", "cake"])
    if "repo" in kind:
        with pytest.raises(DecodingError, match="beyond what the estimator reads"):
            kinds[kind].make([own])
    else:
        assert len(set(kinds[kind].make([own])[0].texts)) == 3


def test_masked_gaps_hide_the_original_words():
    model, tokenizer = masked_model()
    built = MaskedDistractors(model, tokenizer, vocabulary=WORDS)
    seen = []
    forward = model.forward

    def watched(input_ids, attention_mask):
        seen.extend(tokenizer.decode(row[keep.bool()]) for row, keep in zip(input_ids, attention_mask, strict=True))
        return forward(input_ids=input_ids, attention_mask=attention_mask)

    model.forward = watched
    built.make([named("The dog and the cake sleep", ["dog", "cake"])])
    assert seen[:2] == ["<s>The<mask> and the <mask> sleep</s>"] * 2
    assert all(text.count("<mask>") == 1 and "dog" not in text and "cake" not in text for text in seen[2:])


def test_masked_models_by_folder(tmp_path):
    model, tokenizer = masked_model()
    model.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    own = [named(TURNS[0], ["cake"])]
    loaded = MaskedDistractors.load(tmp_path / "m", vocabulary=WORDS)
    assert loaded.make(own)[0].texts == MaskedDistractors(model, tokenizer, vocabulary=WORDS).make(own)[0].texts
    assert loaded.name.startswith("masked (m, temperature 1, seed 0, ")
    model.bert.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    with pytest.raises(CheckpointError, match="without the head"):
        MaskedDistractors.load(tmp_path / "encoder", vocabulary=WORDS)
    tokenizer.mask_token = None
    with pytest.raises(ConfigError, match="no mask piece"):
        MaskedDistractors(model, tokenizer, vocabulary=WORDS)


def test_estimators_by_folder(tmp_path):
    own = estimator("own")
    own.model.save_pretrained(tmp_path)
    own.reader.save(tmp_path)
    target = [named(TURNS[0], ["cake"])]
    loaded = EstimatorDistractors.load(tmp_path, vocabulary=WORDS)
    assert loaded.make(target)[0].texts == EstimatorDistractors(own, vocabulary=WORDS).make(target)[0].texts


def test_bad_values():
    assert DISTRACTORS.get("gee") is EstimatorDistractors and DISTRACTORS.get("masked") is MaskedDistractors
    for options, message in (
        ({"form": "old"}, "form is 'old'"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"vocabulary": WordList("x", ("antidisestablishmentarianism",))}, "no word of 'x' is one piece"),
    ):
        with pytest.raises(ConfigError, match=message):
            EstimatorDistractors(estimator("own"), **options)
    with pytest.raises(ConfigError, match="holds no content word"):
        WordList.of(["the", "a1", "it"])
    with pytest.raises(ConfigError, match="is empty"):
        TurnPool.of(["", "!"])


def test_casing():
    cases = [("cat", "Dog", "Cat"), ("cat", "DOG", "CAT"), ("cat", "dog", "cat"), ("cat", "I", "Cat")]
    assert [cased_like(word, written) for word, written, _ in cases] == [expected for *_, expected in cases]


def test_estimator_memory_spares_a_second_reading(targets):
    own = estimator("own")
    calls = []
    score_rows = own.model.score_rows
    own.model.score_rows = lambda *args: calls.append(1) or score_rows(*args)
    built = EstimatorDistractors(own, vocabulary=WORDS)
    built.make(targets[:2])
    n_calls = len(calls)
    built.make(targets[:2])
    assert n_calls and len(calls) == n_calls
    assert torch.is_tensor(own.memory[TURNS[0]].values)
