"""Word scorers under one protocol: words and ranking by hand, every method, the component, the word sets."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import torch
from tiny_classifiers import encoder_classifier
from tiny_classifiers import save as save_classifier
from tiny_estimators import TEXTS, estimator
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from empatheia.analysis.component import COMPONENTS
from empatheia.analysis.questions import (
    WordAnswer,
    WordQuestion,
    is_candidate,
    labels_meant,
    rank,
    record,
    spread_to_words,
    words_of,
)
from empatheia.errors import CheckpointError, ConfigError, DataError, MissingResourceError
from empatheia.metrics.causes import CauseRecall
from empatheia.records.analysis import TurnLabels
from empatheia.records.dialogue import Dialogue
from empatheia.taxonomy import EMOTIONS
from empatheia.text.stop_words import STOP_WORDS
from empatheia_research.corpora import emocause, reccon, sample
from empatheia_research.corpora.lexicons import Affect, Lexicon
from empatheia_research.understanding.words.baselines import (
    AttentionWords,
    ClassifierWords,
    GradientWords,
    LexiconWords,
    RakeWords,
    RandomWords,
)
from empatheia_research.understanding.words.evidence import PAPER, REPO, RUNNING
from empatheia_research.understanding.words.gold import emocause_words, reccon_words
from empatheia_research.understanding.words.turns import EstimatorWords, WordsOfTurns

LEXICON = Lexicon(
    "nrc_vad",
    frozenset({"cake", "rain", "walk", "dog"}),
    {"cake": Affect(1.0, 0.0), "rain": Affect(0.0, 1.0), "walk": Affect(0.6, 0.0), "dog": Affect(0.5, 0.0)},
)


def scorers():
    tiny = encoder_classifier()
    model, reader = estimator("own bart")
    classifier = (tiny.model, tiny.reader.tokenizer)
    return [
        RandomWords(),
        RakeWords(),
        LexiconWords(LEXICON),
        AttentionWords(*classifier),
        GradientWords(*classifier),
        EstimatorWords(model, reader, REPO),
        EstimatorWords(model, reader, PAPER),
        EstimatorWords(model, reader, RUNNING),
    ]


def ranked(text, scores):
    question = WordQuestion.of(text)
    return [question.surface()[i] for i in rank(question, scores)]


# -- words and rankings --------------------------------------------------------------------------------------


def test_words_keep_their_places():
    text = 'I don\'t know "anybody" here :( \U0001f622'
    places = words_of(text)
    assert [text[a:b] for a, b in places][:5] == ["I", "do", "n't", "know", '"']
    assert all(a < b for a, b in places) and all(x[1] <= y[0] for x, y in itertools.pairwise(places))
    assert words_of("") == ()


def test_what_may_be_named():
    assert len(STOP_WORDS) > 180 and {"i", "wouldn't", "us", "'ll"} <= STOP_WORDS
    assert [is_candidate(w) for w in ("Bear", "THE", "n’t", "!!", "\U0001f622", "re", "reran", "7")] == [
        True, False, False, False, False, False, True, True,
    ]  # fmt: skip


def test_ranking_leaves_out_stop_words_and_breaks_ties_by_place():
    text = "The bear and the dog ran"
    assert ranked(text, [9.0, 1.0, 9.0, 9.0, 2.0, 1.0]) == ["dog", "bear", "ran"]


@pytest.mark.parametrize("text", ["Are you on it?", ":( :(", "... ?!"])
def test_g7_without_a_candidate_one_word_remains(text):
    """Check G7: an all-stop-word utterance returns exactly one word, the best."""
    question = WordQuestion.of(text)
    scores = [0.1] * len(question.words)
    scores[1] = 0.9
    assert rank(question, scores) == [1]
    for scorer in scorers():
        (answer,) = scorer.score([question])
        assert len(rank(question, answer.scores)) == 1
    assert rank(WordQuestion.of(""), []) == []


def test_g6_a_word_once_at_its_best_piece():
    """Check G6: pieces of one word yield the word once, with its best piece's score."""
    question = WordQuestion.of("unhappy dogs bark")
    pieces = [(0, 2, 0.1), (2, 7, 0.5), (8, 11, 0.3), (11, 12, 0.05), (13, 17, 0.4)]
    scores = spread_to_words(question, pieces)
    assert scores == [0.5, 0.3, 0.4] and rank(question, scores) == [0, 2, 1]
    assert spread_to_words(question, pieces, sum) == pytest.approx([0.6, 0.35, 0.4])
    assert spread_to_words(question, pieces[:2]) == [0.5, None, None]


def test_a_piece_over_two_words_counts_for_both():
    assert spread_to_words(WordQuestion.of("don't"), [(0, 5, 0.7)]) == [0.7, 0.7]


def test_labels_meant():
    assert labels_meant("sad", EMOTIONS) == [EMOTIONS.index("sad")]
    assert [EMOTIONS[i] for i in labels_meant("surprise", EMOTIONS)] == ["surprised"]
    assert labels_meant("anger", ("joy", "anger")) == [1]
    with pytest.raises(DataError, match=r"unknown emotion 'sadd'\. Did you mean 'sad'\? Known: afraid"):
        labels_meant("sadd", EMOTIONS)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([0.5, 0.1, 0.3], [0.625, 0.0, 0.375]), ([1.0, 9.0, -1.0], [0.75, 0.0, 0.25]), ([0.0, 0.0, 0.0], [0.5, 0.0, 0.5])],
)
def test_record_shares_one_among_candidates(scores, expected):
    question = WordQuestion.of("dogs the bark")
    made = record(4, question, WordAnswer(None, tuple(scores)))
    assert (made.turn, made.emotion) == (4, "")
    assert [span.score for span in made.words] == pytest.approx(expected)
    assert [(span.start, span.end) for span in made.words] == list(question.words)


def test_recall_of_the_specification():
    """The checks on recall: lenient one way, strict by index, multiplicity, no gold."""

    def recall(words, gold, k=5, strict=False):
        metric = CauseRecall(k, strict=strict)
        metric.update([words], [gold])
        return metric.compute().value / 100

    bear, words = ["see", "bear", "road"], ["bear", "today", "seeing", "roads", "expect"]
    assert [recall(words, bear, k) for k in (1, 3, 5)] == pytest.approx([1 / 3, 2 / 3, 1])
    assert recall(["career"], ["car"]) == 1 and recall(["career"], ["car"], strict=True) == 0
    assert recall(["disney"], ["Disney"]) == 0
    assert recall(["dog", "cat"], ["dog", "dog"]) == 0.5
    assert recall(["dog"], ["dogs"]) == 0
    assert recall(["dog"], []) == 0
    assert recall(["dog", "dogs"], ["dog"]) == 1
    assert recall([("Dog", 3)], [("dog", 3)], strict="index") == 1
    assert recall([("dog", 2)], [("dog", 3)], strict="index") == 0


# -- methods -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(8))
def test_batched_is_single_and_scores_are_finite(number):
    scorer = scorers()[number]
    questions = [WordQuestion.of(text) for text in TEXTS]
    together = scorer.score(questions, batch_size=3)
    for question, answer in zip(questions, together, strict=True):
        (alone,) = scorer.score([question])
        assert len(answer.scores) == len(question.words) and np.isfinite(answer.scores).all()
        assert np.allclose(answer.scores, alone.scores, atol=1e-4) and answer.emotion == alone.emotion
    assert scorer.score([]) == []


def test_random_is_seeded_by_text():
    question = WordQuestion.of(TEXTS[2])
    one, other, another = (
        RandomWords(1).score([question]),
        RandomWords(1).score([question]),
        RandomWords(2).score([question]),
    )
    assert one == other != another


def test_rake_by_hand():
    """Phrases: [big red dog], [dog], [cats]; degree over frequency of dog is (3 + 1) / 2."""
    question = WordQuestion.of("The big red dog, the dog and cats.")
    (answer,) = RakeWords().score([question])
    scores = dict(zip(question.surface(), answer.scores, strict=True))
    assert scores == {"The": 0, "the": 0, "and": 0, ",": 0, ".": 0, "big": 8, "red": 8, "dog": 8, "cats": 1}
    assert [question.surface()[i] for i in rank(question, answer.scores)] == ["big", "red", "dog", "dog", "cats"]


def test_lexicon_is_intensity_and_falls_back_to_stems():
    question = WordQuestion.of("Walking dogs with cake in the rain outside")
    (answer,) = LexiconWords(LEXICON).score([question])
    scores = dict(zip(question.surface(), answer.scores, strict=True))
    assert scores["rain"] == pytest.approx(math.hypot(0.5, 0.5)) and scores["cake"] == 0.5
    assert scores["Walking"] == pytest.approx(0.1) and scores["dogs"] == scores["outside"] == 0
    listed = LexiconWords(Lexicon("nrc_dict", frozenset({"cake"}), {})).score([question])[0]
    assert sum(listed.scores) == 1


def test_attention_is_that_of_the_last_layer():
    tiny = encoder_classifier(pooling="cls")
    words = AttentionWords(tiny.model, tiny.reader.tokenizer)
    question = WordQuestion.of("My dog ate the cake")
    (answer,) = words.score([question])
    used = tiny.model.encoder.config._attn_implementation
    tiny.model.encoder.set_attn_implementation("eager")
    row = tiny.reader.encode([question.text])[0]["input_ids"]
    weights = tiny.model.encoder(input_ids=torch.tensor([row]), output_attentions=True).attentions[-1][0].mean(0)[0]
    assert used != "eager" and len(row) == 7  # one piece a word, so pieces are words
    assert np.allclose(answer.scores, weights[1:-1].detach().numpy(), atol=1e-6)


def test_gradient_is_the_change_of_the_log_probability():
    """To first order: shrinking a word's embedding by a share takes that share of its score off."""
    tiny = encoder_classifier()
    question = WordQuestion.of("My dog ate the cake", "jealous")
    (answer,) = GradientWords(tiny.model, tiny.reader.tokenizer).score([question])
    row = torch.tensor([tiny.reader.encode([question.text])[0]["input_ids"]])
    table = tiny.model.get_input_embeddings()
    label = EMOTIONS.index("jealous")
    for word in range(5):
        changed = []
        for share in (1 - 1e-3, 1 + 1e-3):
            hook = table.register_forward_hook(lambda m, i, out, s=share, w=word: _scaled(out, w + 1, s))
            with torch.inference_mode():
                changed.append(float(tiny.model(input_ids=row).logits.log_softmax(-1)[0, label]))
            hook.remove()
        assert answer.scores[word] == pytest.approx((changed[1] - changed[0]) / 2e-3, abs=2e-2)
    sizes = GradientWords(tiny.model, tiny.reader.tokenizer, signed=False).score([question])[0]
    assert np.allclose(sizes.scores, np.abs(answer.scores), atol=1e-5)
    assert all(parameter.grad is None for parameter in tiny.model.parameters())


def _scaled(output, position, share):
    output = output.clone()
    output[:, position] *= share
    return output


def test_any_sequence_classifier_serves(tmp_path):
    tiny = encoder_classifier()
    pieces: PreTrainedTokenizerFast = tiny.reader.tokenizer
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        id2label=dict(enumerate(EMOTIONS)), label2id={e: i for i, e in enumerate(EMOTIONS)},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(tmp_path / "bert")
    pieces.save_pretrained(tmp_path / "bert")
    save_classifier(tiny, tmp_path / "ours")
    for folder in ("bert", "ours"):
        for method in (AttentionWords, GradientWords):
            words = method.load(tmp_path / folder)
            assert isinstance(words, ClassifierWords) and words.labels == EMOTIONS
            answers = words.score([WordQuestion.of(text) for text in TEXTS])
            assert len(set(answers[2].scores)) > 5 and answers[0].emotion in EMOTIONS
    own = GradientWords(tiny.model, tiny.reader.tokenizer).score([WordQuestion.of(TEXTS[0])])
    again = GradientWords.load(tmp_path / "ours").score([WordQuestion.of(TEXTS[0])])
    assert np.allclose(own[0].scores, again[0].scores, atol=1e-6)
    assert own[0].emotion == EMOTIONS[int(tiny.classify_texts(TEXTS[:1]).argmax())]


def test_estimator_words_share_what_they_remember(monkeypatch):
    model, reader = estimator("own bart")
    memory: dict = {}
    questions = [WordQuestion.of(text) for text in TEXTS]
    first = EstimatorWords(model, reader, PAPER, memory).score(questions)
    assert set(memory) == set(TEXTS)
    monkeypatch.setattr(model, "score_rows", None)  # nothing more is read
    again = EstimatorWords(model, reader, PAPER, memory).score([WordQuestion(q.text, None, q.words) for q in questions])
    assert again == first
    (told,) = EstimatorWords(model, reader, PAPER, memory).score([WordQuestion.of(TEXTS[0], "proud")])
    assert told.emotion == "proud" and told.scores != first[0].scores


# -- the component -------------------------------------------------------------------------------------------

DIALOGUES = [
    Dialogue.of("My dog ate the whole cake.", "Oh no!", "Yes, all of it.", id="a", emotion="angry"),
    Dialogue.of("Congratulations", id="b", emotion="proud"),
    Dialogue(id="c", turns=Dialogue.of("x", "Only I speak, and I walked home in the rain.").turns[1:]),
    Dialogue.of(*[f"turn number {i % 7} of the cake" for i in range(500)], id="d", emotion="sad"),
]


def saved_estimator(folder):
    model, reader = estimator("own bart")
    folder.mkdir()
    model.save_pretrained(folder)
    reader.save(folder)
    (folder / "empatheia.json").write_text(json.dumps({"name": "tiny"}), encoding="utf-8")
    return folder


def test_component(tmp_path):
    folder = saved_estimator(tmp_path / "model")
    words = COMPONENTS.get("words").load(folder)
    done: list[int] = []
    found = words.annotate(DIALOGUES, batch_size=64, progress=done.append)
    assert (words.part, words.name, sum(done)) == ("words", "tiny", 4)
    assert [[r.turn for r in row] for row in found[:3]] == [[0, 2], [0], []] and len(found[3]) == 250
    for row, dialogue in zip(found, DIALOGUES, strict=True):
        (alone,) = words.annotate([dialogue], batch_size=1)
        for together, single in zip(row, alone, strict=True):
            assert (together.turn, together.emotion) == (single.turn, single.emotion)
            assert np.allclose([w.score for w in together.words], [w.score for w in single.words], atol=1e-4)
        for made in row:
            text = dialogue.turns[made.turn].text
            assert made.emotion in EMOTIONS
            assert math.fsum(span.score or 0 for span in made.words) == pytest.approx(1)
            assert "".join(text[s.start : s.end] for s in made.words) == text.replace(" ", "")
    assert {found[0][0].words[0].of(DIALOGUES[0].turns)} == {"My"} and found[0][0].words[0].score == 0


def test_gold_emotions_are_read_on_request_only(tmp_path):
    folder = saved_estimator(tmp_path / "model")
    relabelled = [Dialogue(d.id, d.turns, "jealous") for d in DIALOGUES[:2]]
    own = WordsOfTurns.load(folder)
    assert own.annotate(DIALOGUES[:2]) == own.annotate(relabelled)
    told = WordsOfTurns.load(folder, emotion="conversation", evidence="paper")
    assert [r.emotion for row in told.annotate(relabelled) for r in row] == ["jealous"] * 3
    assert {r.emotion for r in WordsOfTurns.load(folder, emotion="proud").annotate(DIALOGUES[:1])[0]} == {"proud"}

    class Emotion:
        part = "emotion"

        def annotate(self, dialogues, *, batch_size):
            return [tuple(TurnLabels(i, self.told) for i in range(len(d.turns))) for d in dialogues]

    for told, expected in (
        ({"sad": 0.9, "joyful": 0.1}, {"sad"}),
        ({"agreeing": 0.7, "sad": 0.2, "joyful": 0.1}, {"sad"}),  # a classifier of emotions and intents
        ({"agreeing": 0.7, "neutral": 0.3}, {r.emotion for r in own.annotate(DIALOGUES[:1])[0]}),
    ):
        Emotion.told = told
        found = WordsOfTurns.load(folder, emotion=Emotion()).annotate(DIALOGUES[:1])[0]
        assert {r.emotion for r in found} == expected


def test_other_methods_by_name(tmp_path):
    save_classifier(encoder_classifier(), tmp_path / "classifier")
    (tmp_path / "lexicon.txt").write_text("cake\t4.0\t0.8\t[4, 4]\n", encoding="utf-8")
    for method, folder in (
        ("random", None), ("rake", None), ("lexicon", tmp_path / "lexicon.txt"),
        ("attention", tmp_path / "classifier"), ("gradient", tmp_path / "classifier"),
    ):  # fmt: skip
        words = WordsOfTurns.load(folder, method=method)
        (row,) = words.annotate(DIALOGUES[:1])
        assert [r.turn for r in row] == [0, 2]
        assert row[0].emotion == "" if method in ("random", "rake", "lexicon") else row[0].emotion in EMOTIONS
    cake = WordsOfTurns.load(tmp_path / "lexicon.txt", method="lexicon").annotate(DIALOGUES[:1])[0][0]
    assert cake.top(1)[0].of(DIALOGUES[0].turns) == "cake"


def test_errors(tmp_path):
    save_classifier(encoder_classifier(), tmp_path / "classifier")
    for arguments, error, message in (
        ({"method": "rakke"}, ConfigError, r"no method 'rakke'\. Did you mean 'rake'"),
        ({}, ConfigError, "method 'estimator' needs a model folder or a lexicon"),
        ({"folder": "x", "method": "lexicon", "evidence": "repo"}, ConfigError, "goes with method estimator"),
        ({"folder": tmp_path, "evidence": "all"}, ConfigError, "evidence is 'all'; accepted: repo, paper"),
        ({"folder": tmp_path / "none"}, MissingResourceError, "no model folder"),
        (
            {"folder": tmp_path / "classifier"},
            CheckpointError,
            "'utterance_classifier'; accepted: emotion_estimator, or",
        ),
        ({"folder": tmp_path}, CheckpointError, r"no readable config\.json"),
        ({"method": "random", "emotion": "sadd"}, ConfigError, r"unknown emotion 'sadd'\. Did you mean 'sad'"),
        ({"method": "random", "emotion": 3}, ConfigError, "emotion is 3; accepted: an emotion, `conversation`"),
    ):
        with pytest.raises(error, match=message):
            WordsOfTurns.load(**arguments)


# -- word sets -----------------------------------------------------------------------------------------------


def test_reccon_words_are_candidates_inside_own_spans():
    corpus = reccon.load("test", root=sample.root())
    items, counts = reccon_words(corpus)
    notes = {(n.dialogue_id, n.target): n for n in corpus.annotations}
    assert counts["items"] == len(items) > 3
    assert counts["targets"] == len(notes) == len(items) + sum(v for k, v in counts.items() if k.startswith("without"))
    for item in items:
        id, target = item.id.rsplit("/", 1)
        spans = [s for s in notes[id, int(target)].spans if s.turn == int(target)]
        inside = {i for i, (a, b) in enumerate(item.words) if any(s.start < b and a < s.end for s in spans)}
        assert {i for _, i in item.gold} == {i for i in inside if is_candidate(item.text[slice(*item.words[i])])}
        assert [word for word, _ in item.gold] == [item.text[slice(*item.words[i])] for _, i in item.gold]
        assert item.is_whole == (len(item.gold) == sum(is_candidate(item.text[a:b]) for a, b in item.words))
        assert item.question().emotion is None and item.question(True).emotion == item.emotion


@pytest.mark.real_data
def test_reccon_words_of_the_real_corpus():
    from empatheia.resources import data_root

    if data_root() is None:
        pytest.skip("EMPATHEIA_DATA is not set: the real corpora are not here")
    items, counts = reccon_words(reccon.load("test"))
    assert counts["targets"] == 1_099 and counts["without a span in their own turn"] == 431
    assert len(items) + counts["without a candidate in their spans"] == 668


def test_emocause_words_are_the_files_tokens():
    corpus = emocause.load("test", root=sample.root())
    items, _ = emocause_words(corpus)
    assert [item.gold for item in items] == [tuple(zip(i.words, i.causes, strict=True)) for i in corpus.items]
    for item in items:
        perfect = [i for _, i in item.gold]
        assert all(is_candidate(item.text[slice(*item.words[i])]) for i in perfect)
        scores = [float(i in perfect) for i in range(len(item.words))]
        assert set(rank(item.question(), scores)[: len(perfect)]) == set(perfect)
