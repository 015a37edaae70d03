"""Counts of a loaded corpus: what ``empatheia data stats`` prints and what papers tabulate."""

from __future__ import annotations

from collections import Counter
from typing import Any

from empatheia_research.corpora.loading import LoadedCorpus


def corpus_statistics(corpus: LoadedCorpus) -> dict[str, Any]:
    """Plain JSON-ready counts; words are split at white space.

    Returns:
        ``dialogues``, ``turns``, ``words``; ``replies`` (listener turns after the first turn: one training
        example each); ``turns_per_dialogue`` and ``words_per_turn`` (means); ``lengths`` (turns to number of
        dialogues); ``emotions`` (label to number of dialogues); ``annotated_turns``, ``cause_turns``,
        ``cause_spans``, ``problems`` and ``notes``.
    """
    lengths = Counter(len(dialogue.turns) for dialogue in corpus)
    emotions = Counter(dialogue.emotion for dialogue in corpus if dialogue.emotion)
    n_turns = sum(length * n for length, n in lengths.items())
    n_words = sum(len(turn.text.split()) for dialogue in corpus for turn in dialogue.turns)
    return {
        "corpus": corpus.name,
        "split": corpus.split,
        "dialogues": len(corpus),
        "turns": n_turns,
        "words": n_words,
        "replies": sum(turn.role == "listener" for dialogue in corpus for turn in dialogue.turns[1:]),
        "turns_per_dialogue": round(n_turns / max(len(corpus), 1), 2),
        "words_per_turn": round(n_words / max(n_turns, 1), 2),
        "lengths": dict(sorted(lengths.items())),
        "emotions": dict(emotions.most_common()),
        "annotated_turns": len(corpus.annotations),
        "cause_turns": sum(len(note.turns) for note in corpus.annotations),
        "cause_spans": sum(len(note.spans) for note in corpus.annotations),
        "problems": len(corpus.problems),
        "notes": list(corpus.notes),
    }
