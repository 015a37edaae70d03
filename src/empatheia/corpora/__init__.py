"""Corpora: one file a data set, each giving :class:`~empatheia.dialogue.Dialogue` records.

``CORPORA.get(name)`` is that corpus's ``load(split, root=None, strict=False)``, which returns a
``LoadedCorpus``; listing names imports none of them.
"""

from __future__ import annotations

from pathlib import Path

from empatheia.registry import Registry
from empatheia.resources import corpus_roots

CORPORA = Registry(
    "corpora",
    {
        "empathetic_dialogues": "empatheia.corpora.empathetic_dialogues:load",
        "everyday": "empatheia.corpora.everyday:load",
        "curated": "empatheia.corpora.curated:load",
        "own": "empatheia.corpora.own:load",
        "sample": "empatheia.corpora.sample:load",
        "recec": "empatheia.corpora.recec:load",
        "reccon": "empatheia.corpora.reccon:load",
        "edos": "empatheia.corpora.edos:load",
        "empathetic_intents": "empatheia.corpora.empathetic_intents:load",
        "epitome": "empatheia.corpora.epitome:load",
        "emocause": "empatheia.corpora.emocause:load",
        "dailydialog": "empatheia.corpora.conversations:load_dailydialog",
        "esconv_partial": "empatheia.corpora.conversations:load_esconv_partial",
        "commonsense_dialogues_valid_test": "empatheia.corpora.conversations:load_commonsense_dialogues",
        "topical_chat_test_partial": "empatheia.corpora.conversations:load_topical_chat_test_partial",
        "public_domain_plays": "empatheia.corpora.conversations:load_public_domain_plays",
        "dream": "empatheia.corpora.conversations:load_dream",
        "meld": "empatheia.corpora.conversations:load_meld",
        "emorynlp": "empatheia.corpora.conversations:load_emorynlp",
        "mutual": "empatheia.corpora.conversations:load_mutual",
        "opensubtitles_cleaned_sample": "empatheia.corpora.conversations:load_opensubtitles_cleaned_sample",
        "changelog_podcasts": "empatheia.corpora.conversations:load_changelog_podcasts",
        "schema_guided_dialogue_partial": "empatheia.corpora.conversations:load_schema_guided_dialogue",
        "switchboard_swda": "empatheia.corpora.conversations:load_switchboard_swda",
    },
)
"""Name to loader; other packages add theirs through the entry-point group ``empatheia.corpora``."""

CORPORA_FILES = {
    "empathetic_dialogues": "empatheticdialogues/train.csv",
    "recec": "recec/test_with_cause.jsonl",
    "reccon": "reccon/dailydialog_train.json",
    "edos": "edos/1_mturk_groundtruth_labels_9K.csv",
    "empathetic_intents": "empathetic_intents/train_data/train.txt",
    "epitome": "epitome/interpretations-reddit.csv",
    "emocause": "emocause/test.json",
    "dailydialog": "dailydialog/train_partial.jsonl",
    "curated": "curated/corpus.json",
    "own": "own/train.jsonl",
}
"""A file that shows a corpus is there; the others are ``dialogue_corpora/<name>.jsonl``."""

IN_THE_PACKAGE = frozenset(("everyday", "sample"))
"""Corpora that need no data folder."""


def corpus_at_hand(name: str) -> Path | None:
    """The file that shows a corpus is there, or None; nothing is read.

    Args:
        name: Of :data:`CORPORA`, but for :data:`IN_THE_PACKAGE`.
    """
    file = CORPORA_FILES.get(name, f"dialogue_corpora/{name}.jsonl")
    places = (base / (file + end) for base in corpus_roots() for end in ("", ".gz"))
    return next((place for place in places if place.is_file()), None)


_OFFICIAL_SPLITS = {
    "empathetic_dialogues": ("train", "valid", "test"),
    "everyday": ("train", "valid", "test"),
    "curated": ("train", "valid", "test"),
    "own": ("train", "valid", "test"),
    "sample": ("train", "valid", "test"),
    "reccon": ("train", "valid", "test"),
    "dailydialog": ("train", "valid", "test"),
    "empathetic_intents": ("train", "valid", "test"),
    "epitome": ("train", "valid", "test"),
    "recec": ("valid", "test"),
    "emocause": ("valid", "test"),
}


def splits_of(name: str) -> tuple[str, ...]:
    """Splits that make up a corpus: its official ones, or ``all`` where they play no part here."""
    return _OFFICIAL_SPLITS.get(name, ("all",))
