"""Corpora: one file a data set, each giving :class:`~empatheia.records.dialogue.Dialogue` records.

``CORPORA.get(name)`` is that corpus's ``load(split, root=None, strict=False)``, which returns a
``LoadedCorpus``; listing names imports none of them. What else is known of a corpus (splits, a file that shows it is
there, licence) its module says in ``FACTS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from empatheia.registry import Registry
from empatheia.resources import corpus_roots
from empatheia_research.corpora.facts import CorpusFacts

CORPORA = Registry(
    "corpora",
    {
        "empathetic_dialogues": "empatheia_research.corpora.empathetic_dialogues:load",
        "everyday": "empatheia_research.corpora.everyday:load",
        "curated": "empatheia_research.corpora.curated:load",
        "own": "empatheia_research.corpora.own:load",
        "sample": "empatheia_research.corpora.sample:load",
        "recec": "empatheia_research.corpora.recec:load",
        "reccon": "empatheia_research.corpora.reccon:load",
        "edos": "empatheia_research.corpora.edos:load",
        "empathetic_intents": "empatheia_research.corpora.empathetic_intents:load",
        "epitome": "empatheia_research.corpora.epitome:load",
        "emocause": "empatheia_research.corpora.emocause:load",
        "dailydialog": "empatheia_research.corpora.conversations:load_dailydialog",
        "esconv_partial": "empatheia_research.corpora.conversations:load_esconv_partial",
        "esconv": "empatheia_research.corpora.esconv:load_dialogues",
        "esconv_turns": "empatheia_research.corpora.esconv:load_turns",
        "commonsense_dialogues_valid_test": "empatheia_research.corpora.conversations:load_commonsense_dialogues",
        "topical_chat_test_partial": "empatheia_research.corpora.conversations:load_topical_chat_test_partial",
        "public_domain_plays": "empatheia_research.corpora.conversations:load_public_domain_plays",
        "dream": "empatheia_research.corpora.conversations:load_dream",
        "meld": "empatheia_research.corpora.conversations:load_meld",
        "emorynlp": "empatheia_research.corpora.conversations:load_emorynlp",
        "mutual": "empatheia_research.corpora.conversations:load_mutual",
        "opensubtitles_cleaned_sample": "empatheia_research.corpora.conversations:load_opensubtitles_cleaned_sample",
        "changelog_podcasts": "empatheia_research.corpora.conversations:load_changelog_podcasts",
        "schema_guided_dialogue_partial": "empatheia_research.corpora.conversations:load_schema_guided_dialogue",
        "switchboard_swda": "empatheia_research.corpora.conversations:load_switchboard_swda",
    },
)
"""Name to loader; other packages add theirs through the entry-point group ``empatheia_research.corpora``."""


def facts_of(name: str) -> CorpusFacts:
    """What a corpus's module says of it in ``FACTS``, which is a mapping by name where one module has several corpora.

    Raises:
        ConfigError: No corpus of this name is registered.
    """
    module = import_module(CORPORA.target(name).partition(":")[0])
    found = getattr(module, "FACTS", None)
    if isinstance(found, Mapping):
        found = found.get(name)
    return found if isinstance(found, CorpusFacts) else CorpusFacts(splits=("all",))


def splits_of(name: str) -> tuple[str, ...]:
    """Splits that make up a corpus: its official ones, or ``all`` where they play no part here."""
    return facts_of(name).splits


def place_of(name: str) -> Path | None:
    """Where a corpus is: the file that shows it, the corpus's own module where it comes with a package; None: not here.

    Raises:
        ConfigError: No corpus of this name is registered.
    """
    file = facts_of(name).file
    if file is None:
        module = import_module(CORPORA.target(name).partition(":")[0])
        return Path(str(module.__file__))
    places = (root / f"{file}{end}" for root in corpus_roots() for end in ("", ".gz"))
    return next((place for place in places if place.is_file()), None)
