"""The profiles name existing metrics, printed columns and definite variants; worked examples for each family."""

import math

import pytest

from empatheia.errors import ConfigError
from empatheia.metrics import METRICS
from empatheia.metrics.profiles import DEFAULT, PROFILES, WORDS, profile_of
from empatheia.metrics.published import read_published
from empatheia.metrics.score import Score
from empatheia.replies.replies import SystemReply
from empatheia.replies.reply_files import read_replies
from empatheia.replies.scoring import columns_of, own_signature, score_file, score_replies, shared_signature
from empatheia_research.corpora.loading import sample_root

SAMPLES = sample_root() / "replies"
NAMES = {"gao2021", "imagine", "meed2", "rashkin2018", "kim2021", "moel", "mime", "empdg", "kemp", "cem"}


def pairs(*texts, **fields):
    return [SystemReply("x", hyp, ref, line=i, **fields) for i, (hyp, ref) in enumerate(texts, start=1)]


def measured(replies, profile):
    cells, missing = score_replies(replies, columns_of(profile), n_resamples=0)
    return {cell.column.name: cell for cell in cells}, {column.name: reason for column, reason in missing}


def test_names():
    assert set(PROFILES) == NAMES
    with pytest.raises(ConfigError, match=r"unknown profile 'gao2012'. Did you mean 'gao2021'"):
        profile_of("gao2012")


@pytest.mark.parametrize("profile", [*PROFILES.values(), DEFAULT], ids=lambda profile: profile.name)
def test_columns_are_metrics_that_exist(profile):
    names = [column.name for column in profile.columns]
    assert len(set(names)) == len(names)
    for column in profile.columns:
        assert column.metric in METRICS or column.missing
        assert column.words in WORDS


@pytest.mark.parametrize("paper", ["gao2021", "imagine", "rashkin2018", "meed2"])
def test_printed_columns_are_named_as_in_print(paper):
    printed = {number.metric for number in read_published() if number.paper == paper}
    ours = {column.name for column in profile_of(paper).columns if column.is_printed}
    assert ours <= printed
    people = {"Fluency", "Relevance", "Empathy", "Win %", "Loss %", "Tie %", "Fleiss kappa", "Good", "Okay", "Bad"}
    facts = {metric for metric in printed if metric[0].islower() and "weighted" not in metric} | {"GPUs", "A:B ratio"}
    classification = {"F1", "Acc", "accuracy (%)", "41-class emotion/intent classifier accuracy (%)"}
    rest = printed - ours - people - facts - classification
    assert {metric for metric in rest if "SVM" not in metric} == set()


# -- worked examples: one reply of "a b c e" for "a b c d", one of "x" for "y" -----------------------------------

WORKED = (("a b c e", "a b c d"), ("x", "y"))


def test_moses_bleu_is_lower_cased():
    cells, _ = measured(pairs(("A b C d", "a B c D")), "moel")
    assert cells["BLEU"].value == pytest.approx(100)
    assert cells["corpus BLEU-2"].value == 0
    assert cells["BLEU"].score.name == "bleu_corpus_4_lc"


def test_sentence_mean_of_empdg():
    cells, _ = measured(pairs(("a b c d", "a b c d"), ("x", "x"), ("a b c e", "a b c d")), "empdg")
    assert cells["BLEU"].value == pytest.approx(100 / 3)  # short replies and those without a 4-gram score 0
    assert cells["p1"].value == pytest.approx(100 * 8 / 9)
    assert cells["p4"].value == pytest.approx(100 / 2)


@pytest.mark.parametrize("profile", ["empdg", "kemp"])
def test_joined_bigrams(profile):
    """Check 30 of the baselines."""
    cells, _ = measured(pairs(("a bc", "q"), ("ab c", "q")), profile)
    assert cells["Dist-2"].value == pytest.approx(50)
    assert cells["D-2"].value == pytest.approx(100)
    assert cells["Dist-2 within"].value == pytest.approx(100)


def test_orders_of_kemp():
    cells, _ = measured(pairs(*WORKED), "kemp")
    assert cells["BLEU-1"].value == pytest.approx(100 * 3 / 5)
    assert cells["BLEU-2"].value == pytest.approx(100 * math.sqrt(3 / 5 * 2 / 3))
    assert cells["BLEU-4"].value == 0


def test_replies_are_cut_again_for_cem_and_imagine():
    """NLTK parts what white space does not: the mark at a sentence's end."""
    replies = pairs(("good.", "q"), ("good .", "q"))
    for profile, names in (("cem", ("Dist-1", "Dist-2")), ("imagine", ("Distinct-1", "Distinct-2"))):
        cells, _ = measured(replies, profile)
        assert [cells[name].value for name in names] == pytest.approx([50, 50])
        assert "tok:nltk-cased" in cells[names[0]].score.signature
    assert measured(replies, "kemp")[0]["Dist-1"].value == pytest.approx(100)


@pytest.mark.parametrize(("profile", "column"), [("cem", "Dist-1"), ("imagine", "Distinct-1")])
def test_case_is_kept_for_cem(profile, column):
    """CEM's script hands the text to NLTK as it is; its own replies are lower-case, others' need not be."""
    replies = pairs(('Good "dog', "q"), ("good dog", "q"))
    assert measured(replies, profile)[0][column].value == pytest.approx(100 * 4 / 5)  # Good `` dog good
    cells, _ = score_replies(replies, columns_of(metrics=["dist_corpus_1"], words="nltk"), n_resamples=0)
    assert cells[0].value == pytest.approx(100 * 3 / 5)


def test_labels_of_a_file_give_a_table_and_distances():
    replies = pairs(*WORKED, emotion="sad", predicted=("sad", "angry"))
    names = ["confusion", "distribution_tv", "accuracy_batch_mean"]
    cells, missing = score_replies(replies, columns_of(metrics=names), n_resamples=0)
    assert [cell.value for cell in cells] == [100, 0]
    assert [column.name for column, _ in missing] == ["accuracy_batch_mean"]
    assert missing[0][1].startswith("needs the batches")


def test_every_bleu_2_that_imagine_may_mean():
    cells, _ = measured(pairs(*WORKED), "imagine")
    two = 100 * math.sqrt(3 / 4 * 2 / 3)
    assert cells["BLEU-2"].value == pytest.approx(100 * math.sqrt(3 / 5 * 2 / 3))
    assert cells["BLEU-2 sentence"].value == pytest.approx(two / 2)
    assert cells["BLEU-2 corpus +1"].value == pytest.approx(100 * math.sqrt(4 / 6 * 3 / 4))
    smoothed = 100 * math.sqrt(4 / 5 * 3 / 4), 100 * math.sqrt(1 / 2 * 1 / 1)
    assert cells["BLEU-2 sentence +1"].value == pytest.approx(sum(smoothed) / 2)


def test_units_of_gao():
    cells, missing = measured(pairs(*WORKED, emotion="sad", predicted=("sad", "angry")), "gao2021")
    assert (cells["Dist-1"].value, cells["Dist-1"].unit) == (1.0, "fraction")
    assert (cells["Accuracy"].value, cells["Accuracy"].unit) == (100.0, "percent")
    assert cells["BLEU"].score.name == "bleu_nltk_4"
    assert set(missing) == {"P_BERT", "R_BERT", "F_BERT"}


def test_words_of_rashkin():
    """Check R of Rashkin et al., through its tokeniser: case is kept, marks are parted, unknown words never match."""
    cells, _ = measured(pairs(("a b c e", "a b c d")), "rashkin2018")
    four = [cells[f"BLEU-{n}"].value for n in range(1, 5)]
    assert four == pytest.approx([75, 70.71, 63.00, 0], abs=0.005)
    assert cells["AVG BLEU"].value == pytest.approx(52.18, abs=0.005)
    cells, _ = measured(pairs(("that's it.", "that ' s it .")), "rashkin2018")
    assert cells["AVG BLEU"].value == pytest.approx(100)
    cells, _ = measured(pairs(("That is it now", "that is it now")), "rashkin2018")
    assert cells["BLEU-1"].value == pytest.approx(75)
    cells, _ = measured(pairs(("<UNK> <UNK>", "<UNK> <UNK>")), "rashkin2018")
    assert cells["BLEU-1"].value == 0


def test_labels_of_meed2():
    replies = [
        SystemReply("x", "a", "b", emotion=gold, predicted=(guess,))
        for gold, guess in [("questioning", "questioning"), ("sad", "questioning"), ("wishing", "wishing")]
    ]
    cells, missing = measured(replies, "meed2")
    assert cells["weighted recall"].value == pytest.approx(2 / 3)
    assert cells["weighted precision"].value == pytest.approx((1 / 2 + 0 + 1) / 3)
    assert cells["weighted F1"].value == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert set(missing) == {"PPL", "SES"}


@pytest.mark.parametrize(
    ("file", "profile", "system", "expected"),
    [
        ("mime.txt", "mime", "Beam", {"Accuracy": 50.0}),
        ("cem.txt", "cem", "Greedy", {"Accuracy": 50.0, "top-3": 100.0}),
    ],
)
def test_accuracy_from_a_file(file, profile, system, expected):
    (scores,) = score_file(read_replies(SAMPLES / file), columns_of(profile), [system], n_resamples=0)
    assert {name: scores.cell(name).value for name in expected} == expected


def test_too_few_guesses_are_missing_with_the_line():
    (scores,) = score_file(read_replies(SAMPLES / "mime.txt"), columns_of("moel"), ["beam"], n_resamples=0)
    reasons = {column.name: reason for column, reason in scores.missing}
    assert reasons["top-3"] == "needs 3 guesses an item; the item at line 4 has 1"
    assert "likelihood" in reasons["PPL"] and "empatheia evaluate" in reasons["PPL"]


def test_blank_and_identical_replies():
    """Check 31 of the baselines."""
    cells, _ = measured(pairs(("a b c d", "a b c d")), "moel")
    assert (cells["BLEU"].value, cells["BP"].value) == (pytest.approx(100), 1.0)
    cells, _ = measured(pairs(("", "a b c d")), "moel")
    assert (cells["BLEU"].value, cells["BP"].value) == (0, 0)
    assert cells["D-1"].show() == "-"  # no token, no ratio
    cells, _ = measured(pairs(("a b c d", "a b c d e f g h")), "moel")
    assert cells["BP"].value == pytest.approx(math.exp(-1))


def test_without_references_only_variety_is_left():
    cells, missing = measured([SystemReply("x", "a b"), SystemReply("x", "a c")], "gao2021")
    assert set(cells) == {"Dist-1", "Dist-2"}
    assert missing["BLEU"].startswith("needs references: give --ref")


@pytest.mark.parametrize("name", METRICS.names())
def test_any_registered_metric_is_measured_or_says_why_not(name):
    replies = read_replies(SAMPLES / "replies.jsonl").of("long")
    cells, missing = score_replies(replies, columns_of(metrics=[name]), n_resamples=10)
    assert len(cells) + len(missing) == 1
    for _, reason in missing:
        assert "need" in reason, reason


def test_systems_and_merging_agree_with_single_items():
    """Order of the items changes nothing."""
    replies = read_replies(SAMPLES / "replies.jsonl").of("long")
    for profile in PROFILES:
        forward, _ = measured(replies, profile)
        backward, _ = measured(replies[::-1], profile)
        assert [c.show() for c in forward.values()] == [c.show() for c in backward.values()]


def test_signatures_of_a_table():
    (scores, _) = score_file(read_replies(SAMPLES / "replies.jsonl"), columns_of(), n_resamples=10)
    shared = shared_signature(scores.cells)
    for cell in scores.cells:
        both = {**shared.values, **own_signature(cell, shared).values}
        assert "|".join(f"{key}:{both[key]}" for key in sorted(both)) == cell.score.signature
    data = scores.to_dict()
    assert Score.from_dict(data["scores"][0]["score"]).name == "bleu_corpus_1"


def test_choice_of_columns():
    assert [column.name for column in columns_of(metrics=["bleu_sacre"])] == ["bleu_sacre"]
    assert columns_of("moel", ["bleu_sacre"])[-1].name == "bleu_sacre"
    assert {column.words for column in columns_of(words="nltk")} == {"nltk", "space"}
    with pytest.raises(ConfigError, match=r"no metric is called 'bleu_sacree'"):
        columns_of(metrics=["bleu_sacree"])
    with pytest.raises(ConfigError, match="fixes how words are cut"):
        columns_of("moel", words="nltk")
    with pytest.raises(ConfigError, match="unknown words"):
        columns_of(words="bpe")  # type: ignore[arg-type]
