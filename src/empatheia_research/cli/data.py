"""``empatheia data``: list corpora, get them, look into them, count them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.cli.options import JsonOption, group
from empatheia.cli.output import aligned, print_json, print_lines, say, show, visible
from empatheia.cli.progress import download_bar
from empatheia.errors import DataError, MissingResourceError
from empatheia.registry import nearest
from empatheia_research.corpora import CORPORA, empathetic_dialogues, place_of, recec, splits_of
from empatheia_research.corpora.fetching import fetch_empathetic_dialogues
from empatheia_research.corpora.licences import LICENCES, licence
from empatheia_research.corpora.loading import is_sample, sample_root
from empatheia_research.corpora.statistics import corpus_statistics

if TYPE_CHECKING:
    from empatheia.records.dialogue import CauseAnnotation, Dialogue
    from empatheia_research.corpora.loading import LoadedCorpus

app = group("Get, show and count corpora.")
NameArgument = Annotated[str, typer.Argument(help="Name of a corpus, see `empatheia data list`.")]
SplitOption = Annotated[str | None, typer.Option("--split", "-s", help="train, valid or test; default the first.")]


@app.command("list")
def list_corpora(as_json: JsonOption = False) -> None:
    r"""List corpora: licence, origin, whether they are on this machine.

    \b
    empatheia data list
    """
    entries = []
    for name in CORPORA.names():
        terms = LICENCES.get(name)
        entries.append(
            {
                "name": name,
                "present": place_of(name) is not None,
                "licence": terms.licence if terms else "?",
                "released_weights": terms.may_train_released_weights if terms else False,
                "share_alike": terms.share_alike if terms else False,
                "reason": terms.reason if terms else "another package's corpus: see there",
                "origin": terms.home if terms else CORPORA.target(name),
            }
        )
    if as_json:
        print_json(entries)
        return
    header = ("name", "here", "licence", "released weights", "origin")
    rows = [(e["name"], "yes" if e["present"] else "no", e["licence"], _yes_no(e), e["origin"]) for e in entries]
    _print_table(header, rows)


@app.command("get")
def get_corpus(name: NameArgument) -> None:
    r"""Fetch a corpus from its official address, check it and unpack it into the cache.

    \b
    empatheia data get empathetic_dialogues
    """
    CORPORA.target(name)
    if place_of(name) is not None:
        path = _load(name, splits_of(name)[0]).path
        show(str(path))
        say(f"{name} is already here.")
        return
    terms = licence(name)
    if name != empathetic_dialogues.NAME:
        raise MissingResourceError(
            f"{name} cannot be fetched by this command (licence: {terms.licence}; from: {terms.home}): {_advice(name)}"
        )
    say(f"{name}: {terms.licence}. {terms.reason}")
    with download_bar(empathetic_dialogues.SIZE) as advance:
        paths = fetch_empathetic_dialogues(say=say, progress=advance)
    for path in paths:
        show(str(path))


@app.command("show")
def show_corpus(
    name: NameArgument,
    split: SplitOption = None,
    n: Annotated[int, typer.Option("-n", "--n", min=1, help="How many dialogues.")] = 3,
    ids: Annotated[list[str] | None, typer.Option("--id", help="Show this dialogue; may be repeated.")] = None,
    as_json: JsonOption = False,
) -> None:
    r"""Print dialogues: roles, emotion, situation and, where known, what caused the emotion.

    \b
    empatheia data show sample -n 2
    """
    corpus = _load(name, split or splits_of(name)[0])
    known = corpus.by_id()
    for id in ids or ():
        if id not in known:
            raise DataError(f"{corpus.path} has no dialogue {id!r}.{nearest(id, list(known))}")
    chosen = [known[id] for id in ids] if ids else list(corpus)[:n]
    causes = _causes(corpus)
    for place, dialogue in enumerate(chosen):
        notes = causes.get(dialogue.id, ())
        if as_json:
            print_json(_record(dialogue, corpus, notes))
        else:
            print_lines([[("", "")]] if place else [])
            print_lines(_lines(dialogue, corpus, notes))


@app.command("stats")
def corpus_stats(
    names: Annotated[list[str], typer.Argument(help="Names of corpora.")],
    split: SplitOption = None,
    as_json: JsonOption = False,
) -> None:
    r"""Count dialogues, turns, words, replies and cause labels.

    \b
    empatheia data stats sample reccon
    """
    counts = []
    for name in names:
        for part in [split] if split else splits_of(name):
            counts.append(corpus_statistics(_load(name, part)))
    if as_json:
        print_json(counts)
        return
    fields = ("dialogues", "turns", "words", "replies", "turns_per_dialogue", "words_per_turn")
    fields += ("annotated_turns", "cause_turns", "cause_spans", "problems")
    rows = [(c["corpus"], c["split"], *(f"{c[field]:,}" for field in fields)) for c in counts]
    _print_table(("corpus", "split", *(field.replace("_", " ") for field in fields)), rows, first_number=2)
    for c in counts:
        for note in c["notes"]:
            say(f"{c['corpus']}/{c['split']}: {note}")


def _load(name: str, split: str) -> LoadedCorpus:
    return CORPORA.get(name)(split)


def _advice(name: str) -> str:
    """How to get a corpus by hand: the message of its own loader."""
    try:
        _load(name, splits_of(name)[0])
    except MissingResourceError as error:
        return str(error)
    return ""


def _causes(corpus: LoadedCorpus) -> dict[str, tuple[CauseAnnotation, ...]]:
    """The corpus's own causes; for EmpatheticDialogues and the sample those of RecEC where they are here."""
    if corpus.annotations or corpus.name not in ("empathetic_dialogues", "sample"):
        return corpus.annotations_of()
    try:
        return recec.load(corpus.split, root=sample_root() if is_sample(corpus.path) else None).annotations_of()
    except MissingResourceError:
        return {}


def _record(dialogue: Dialogue, corpus: LoadedCorpus, notes: Sequence[CauseAnnotation]) -> dict[str, Any]:
    labels = corpus.turn_labels.get(dialogue.id, ())
    return {
        "id": dialogue.id,
        "source": dialogue.source,
        "emotion": dialogue.emotion,
        "situation": dialogue.situation,
        "turns": [
            {"role": turn.role, "text": turn.text, **({"label": labels[i]} if i < len(labels) else {})}
            for i, turn in enumerate(dialogue.turns)
        ],
        "causes": [
            {
                "target": note.target,
                "emotion": note.emotion,
                "turns": list(note.turns),
                "spans": [{"turn": s.turn, "start": s.start, "end": s.end} for s in note.spans],
                "latent": (dialogue.id, note.target) in corpus.latent,
                "annotator": note.annotator,
            }
            for note in notes
        ],
    }


def _lines(dialogue: Dialogue, corpus: LoadedCorpus, notes: Sequence[CauseAnnotation]) -> list[list[tuple[str, str]]]:
    head = dialogue.id + (f"  {dialogue.emotion}" if dialogue.emotion else "")
    lines = [[(head, "bold")]]
    if dialogue.situation:
        lines.append([("  situation  ", "dim"), (visible(dialogue.situation), "italic")])
    labels = corpus.turn_labels.get(dialogue.id, ())
    for i, turn in enumerate(dialogue.turns):
        label = f"  ({labels[i]})" if i < len(labels) and labels[i] else ""
        lines.append([(f"{i + 1:>3} {turn.role:<8} ", "dim"), (visible(turn.text), ""), (label, "cyan")])
        for note in notes:
            if note.target == i:
                lines.append([("             because of ", "dim"), (_because(dialogue, corpus, note), "yellow")])
    return lines


def _because(dialogue: Dialogue, corpus: LoadedCorpus, note: CauseAnnotation) -> str:
    """The causes of one turn: spans with their turn numbers, else turn numbers."""
    parts = [f'{span.turn + 1}: "{span.of(dialogue.turns)}"' for span in note.spans] if note.spans else []
    if not parts and note.turns:
        parts = ["turn" + ("s " if len(note.turns) > 1 else " ") + ", ".join(str(turn + 1) for turn in note.turns)]
    if (dialogue.id, note.target) in corpus.latent:
        parts.append("something outside the conversation")
    return "; ".join(parts) or "nothing the annotator found"


def _yes_no(entry: dict[str, Any]) -> str:
    if not entry["released_weights"]:
        return "no"
    return "yes, share-alike" if entry["share_alike"] else "yes"


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]], first_number: int | None = None) -> None:
    """A rich table on a terminal, aligned columns elsewhere; columns from ``first_number`` on are numbers."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, header_style="bold")
        for i, name in enumerate(header):
            table.add_column(name, justify="right" if first_number is not None and i >= first_number else "left")
        for row in rows:
            table.add_row(*(Text(visible(cell)) for cell in row))
        Console().print(table)
        return
    for line in aligned((header, *rows), range(len(header) if first_number is None else first_number, len(header))):
        show(line)
