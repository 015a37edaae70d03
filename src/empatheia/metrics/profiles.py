"""Which numbers a paper prints, and exactly which variant each of them is.

A profile is an ordered list of columns. A column names a metric of ``METRICS``, what cuts the words, and the unit in
print. Columns that no paper prints but that make the systems comparable (``ANCHORS``) come after those that it does.
Sources: the papers' evaluation sections and the scripts in their repositories.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from empatheia.errors import ConfigError
from empatheia.registry import nearest

Words = Literal["space", "nltk", "nltk-cased", "family", "rashkin"]

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "space": "tokens as the file has them, at white space",
        "nltk": "lower-case NLTK words, sentences first",
        "nltk-cased": "the same, case kept (CEM's evaluation)",
        "family": "lower-case, contractions expanded, NLTK words (how the MoEL family prepares its data)",
        "rashkin": "the cased spacing rules of the EmpatheticDialogues code",
    }
)
"""What may cut the words of a column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a profile.

    Attributes:
        name: As the paper prints it.
        metric: A key of ``METRICS``, or a name that is none of them yet (see ``missing``).
        unit: Unit in print; empty = the metric's own.
        words: A key of ``WORDS``.
        part: A number behind the metric, e.g. ``brevity_penalty``; empty = its value.
        settings: Further arguments of the metric.
        is_printed: Whether the paper prints it; the others are for comparison.
        note: Which variant it is and where that is from.
        missing: Why no file of replies can give it, and what can; empty where one can.
    """

    name: str
    metric: str
    unit: str = ""
    words: Words = "space"
    part: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_printed: bool = True
    note: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """The numbers of one paper.

    Attributes:
        name: Key of ``PROFILES``.
        title: Paper and what was read for it.
        columns: In the order of print.
    """

    name: str
    title: str
    columns: tuple[Column, ...]


def profile_of(name: str) -> Profile:
    """The profile of that name.

    Raises:
        ConfigError: There is none.
    """
    if name not in PROFILES:
        hint = nearest(name, list(PROFILES))
        raise ConfigError(f"unknown profile {name!r}.{hint} Known: {', '.join(PROFILES)}.")
    return PROFILES[name]


NLL = (
    "needs the likelihood of every gold reply, which texts do not hold: `empatheia evaluate RUN` measures it for a"
    " model trained here, `empatheia.metrics.perplexity` takes yours"
)
TOKENS = "needs an encoder: name its folder with `--bertscore`; `empatheia.metrics.bertscore` takes the vectors of any"
ENCODER = "needs the vectors of an encoder: `empatheia.metrics.bertscore` and `.similarity` take those of any"
RATERS = "needs its own model of empathy: `empatheia analyze --with mechanisms` on the replies, then mean of the levels"

_ITEM_PPL = "exp of the mean over replies of the reply's mean nats (test batch 1); not weighted by tokens"


def _anchor(name: str, metric: str, part: str = "", note: str = "") -> Column:
    return Column(name, metric, part=part, is_printed=False, note=note)


ANCHORS: tuple[Column, ...] = (
    _anchor("corpus BLEU-2", "bleu_corpus_2"),
    _anchor("corpus BLEU-4", "bleu_corpus_4"),
    _anchor("BP", "bleu_corpus_4", "brevity_penalty"),
    _anchor("D-1", "dist_corpus_1"),
    _anchor("D-2", "dist_corpus_2"),
    _anchor("length", "dist_corpus_1", "mean_length", "mean number of tokens a reply"),
    _anchor("distinct replies", "dist_corpus_1", "distinct_replies", "number of different replies"),
)
"""What can be compared between the released outputs of all systems: tokens at white space, no casing, percent."""


def _ppl(note: str = _ITEM_PPL, metric: str = "ppl_item", **settings: Any) -> Column:
    return Column("PPL", metric, settings=settings, note=note, missing=NLL)


def _accuracy(name: str = "Accuracy", metric: str = "accuracy", unit: str = "percent", note: str = "") -> Column:
    return Column(name, metric, unit, note=note or "mean over batches; test batch 1, so over items")


_MULTI_BLEU = Column(
    "BLEU", "bleu_corpus_4_lc", "percent", note="Moses multi-bleu.perl -lc: corpus BLEU-4, lower-cased, unsmoothed"
)
_DIST_1 = Column("Dist-1", "dist_corpus_1", "percent", note="over all replies")
_DIST_2_CONCAT = Column(
    "Dist-2", "dist_corpus_concat_2", "percent", note="over all replies; the two words joined without a space"
)
_WITHIN = (
    Column("Dist-1 within", "dist_response_1_zero", "percent", is_printed=False, note="mean over replies"),
    Column("Dist-2 within", "dist_response_concat_2_zero", "percent", is_printed=False, note="mean over replies"),
)


def _precisions(metric: str) -> tuple[Column, ...]:
    return tuple(Column(f"p{n}", metric, part=f"precision_{n}", is_printed=False) for n in range(1, 5))


_PROFILES = (
    Profile(
        "gao2021",
        "Gao et al. 2021, section 4.2; repository RecEC",
        (
            Column("BLEU", "bleu_nltk_4", "percent", note="nltk corpus_bleu, uniform weights, unsmoothed"),
            *(
                Column(
                    f"{letter}_BERT",
                    f"bertscore_{letter.lower()}_rescaled",
                    "fraction",
                    missing=TOKENS,
                    note="roberta-large, layer 17, rescaled, no idf",
                )
                for letter in "PRF"
            ),
            Column("Dist-1", "dist_corpus_1", "fraction", note="over all replies, a fraction"),
            Column("Dist-2", "dist_corpus_2", "fraction", note="over all replies, a fraction"),
            _accuracy(note="top-1 of 32; the released code takes a mean over batches"),
        ),
    ),
    Profile(
        "imagine",
        "Chen & Liang 2022, table 1; evaluated as CEM's repository does",
        (
            _ppl(),
            Column("BLEU-2", "bleu_corpus_2", "percent", note="the paper defines none: corpus, unsmoothed"),
            Column("BLEU-2 corpus +1", "bleu_corpus_2_add1", "percent", is_printed=False, note="corpus, smoothed"),
            Column("BLEU-2 sentence", "bleu_sent_none_2", "percent", is_printed=False, note="sentence mean"),
            Column("BLEU-2 sentence +1", "bleu_sent_add1_2", "percent", is_printed=False, note="mean, smoothed"),
            Column("Distinct-1", "dist_corpus_1", "percent", "nltk-cased", note="replies cut again by NLTK"),
            Column("Distinct-2", "dist_corpus_2", "percent", "nltk-cased", note="replies cut again by NLTK"),
            _accuracy("ACC"),
        ),
    ),
    Profile(
        "meed2",
        "Xie & Pu 2021, section 6, tables 3 and 4",
        (
            _ppl("token-weighted, end mark counted; with the gold label of the reply", "ppl_token", gold_labels=True),
            Column("Distinct-1", "dist_corpus_1", "fraction", note="over all replies; the paper names no tokeniser"),
            Column("Distinct-2", "dist_corpus_2", "fraction", note="over all replies; the paper names no tokeniser"),
            Column("SES", "sentence_similarity", "fraction", missing=ENCODER, note="cosine with the gold reply"),
            Column("weighted precision", "precision_weighted", "fraction", note="emotion or intent of the reply"),
            Column("weighted recall", "recall_weighted", "fraction", note="equals accuracy"),
            Column("weighted F1", "f1_weighted", "fraction", note="emotion or intent of the reply"),
        ),
    ),
    Profile(
        "rashkin2018",
        "Rashkin et al. 2019, table 2 and appendix; fairseq's scorer",
        (
            Column(
                "P@1,100",
                "p_at_1_100",
                "percent",
                missing="needs the scores of 100 candidates an item: `empatheia.metrics.retrieval` takes them",
            ),
            Column(
                "AVG BLEU",
                "bleu_avg",
                "percent",
                "rashkin",
                settings={"unknown": "<UNK>"},
                note="mean of corpus BLEU-1..4, cased; an unknown word in a reference never matches",
            ),
            _ppl("token-weighted, end mark counted", "ppl_token"),
            *(
                Column(
                    f"BLEU-{n}",
                    "bleu_avg",
                    "percent",
                    "rashkin",
                    f"bleu_{n}",
                    {"unknown": "<UNK>"},
                    is_printed=False,
                    note="cumulative; the scorer prints the four",
                )
                for n in range(1, 5)
            ),
        ),
    ),
    Profile(
        "kim2021",
        "Kim et al. 2021, section 5",
        (
            Column(
                "Coverage",
                "coverage",
                missing="needs the cause words of every context, the same list for every system compared",
            ),
            Column("Exploration", "mechanism_level", "level", missing=RATERS, note="EPITOME, mean level"),
            Column("Interpretation", "mechanism_level", "level", missing=RATERS, note="EPITOME, mean level"),
            _ppl("token-weighted over the pragmatic distribution, end mark counted", "ppl_token"),
            *(
                Column(
                    name,
                    metric,
                    "fraction",
                    is_printed=False,
                    note="ParlAI's; its evaluation prints it, greedy decoding",
                )
                for name, metric in (("BLEU-4", "parlai_bleu_4"), ("F1", "parlai_f1"))
            ),
            Column(
                "token accuracy",
                "token_accuracy",
                is_printed=False,
                missing="needs the model's best piece at every place of the gold reply, which texts do not hold",
                note="of the pragmatic distribution's best piece, given the gold pieces before it",
            ),
            *ANCHORS,
        ),
    ),
    Profile(
        "moel",
        "Lin et al. 2019; repository MoEL",
        (
            _ppl(),
            _MULTI_BLEU,
            _accuracy("top-1"),
            _accuracy("top-3", "accuracy_top3"),
            _accuracy("top-5", "accuracy_top5"),
            *ANCHORS,
        ),
    ),
    Profile(
        "mime",
        "Majumder et al. 2020; repository MIME",
        (
            _ppl(_ITEM_PPL + "; the gold emotion picks the polarity", gold_labels=True),
            _MULTI_BLEU,
            _accuracy(),
            *ANCHORS,
        ),
    ),
    Profile(
        "empdg",
        "Li et al. 2020; repository EmpDG (contexts of three or more turns without their last)",
        (
            _accuracy(),
            _ppl(),
            Column("BLEU", "bleu_sent_none", "percent", note="mean of unsmoothed sentence BLEU-4, as it prints"),
            _DIST_1,
            _DIST_2_CONCAT,
            *_WITHIN,
            *_precisions("bleu_corpus_4"),
            *ANCHORS,
        ),
    ),
    Profile(
        "kemp",
        "Li et al. 2022; repository KEMP, its script for metrics",
        (
            _accuracy(),
            _ppl(),
            _DIST_1,
            _DIST_2_CONCAT,
            Column("BLEU-1", "bleu_corpus_1", "percent", is_printed=False, note="the script prints it"),
            Column("BLEU-2", "bleu_corpus_2", "percent", is_printed=False, note="the script prints it"),
            Column("BLEU-4", "bleu_corpus_4", "percent", is_printed=False, note="the script prints it"),
            *_WITHIN,
            *ANCHORS,
        ),
    ),
    Profile(
        "cem",
        "Sabour et al. 2022; repository CEM, its script for metrics",
        (
            _ppl(),
            Column("Dist-1", "dist_corpus_1", "percent", "nltk-cased", note="over all replies, cut again by NLTK"),
            Column("Dist-2", "dist_corpus_2", "percent", "nltk-cased", note="over all replies, cut again by NLTK"),
            _accuracy(),
            Column("top-3", "accuracy_top3", "percent", is_printed=False, note="the file holds three guesses"),
            *ANCHORS,
        ),
    ),
)

PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _PROFILES})
"""Name to profile."""

DEFAULT = Profile(
    "default",
    "What a file of replies can tell, each in its best defined variant",
    (
        Column("BLEU-1", "bleu_corpus_1"),
        Column("BLEU-2", "bleu_corpus_2"),
        Column("BLEU-4", "bleu_corpus_4"),
        Column("AVG BLEU", "bleu_avg", note="mean of corpus BLEU-1..4"),
        Column("sentence BLEU", "bleu_sent_none", note="mean of unsmoothed sentence BLEU-4"),
        Column("sacreBLEU", "bleu_sacre"),
        Column("chrF", "chrf"),
        Column("ROUGE-L", "rouge_l"),
        Column("Distinct-1", "dist_corpus_1"),
        Column("Distinct-2", "dist_corpus_2"),
        Column("repetition", "repetition_4"),
        Column("length", "length_words", note="mean number of words a reply"),
        Column("distinct replies", "dist_corpus_1", part="distinct_replies", note="number of different replies"),
        Column("accuracy", "accuracy"),
        Column("weighted F1", "f1_weighted"),
        Column("perplexity", "ppl_token", missing=NLL),
        Column("BERTScore F", "bertscore_f", missing=TOKENS),
    ),
)
"""What is measured when no profile is named."""
