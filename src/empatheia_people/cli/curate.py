"""``empatheia curate``: dialogues out of subtitles and chats, and the segmenter that finds the turns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from empatheia.cli.options import JsonOption, group
from empatheia.cli.output import print_json, print_lines, say, show, visible
from empatheia.errors import ConfigError, DataError
from empatheia.reading import UnreadableError
from empatheia.registry import nearest
from empatheia.resources import corpus_roots
from empatheia_people.cli.analyze_shards import told_shards
from empatheia_people.curation.explaining import as_record, explain
from empatheia_people.curation.labelled_pairs import films_of_script, read_films
from empatheia_people.curation.report import funnel, write_page
from empatheia_people.curation.run import STAGES, Curation, settings_of, stage_states
from empatheia_people.curation.samples import sampled
from empatheia_people.curation.segmenter_training import train
from empatheia_people.curation.settings import load_settings
from empatheia_people.curation.sources import find_sources, reason_of

if TYPE_CHECKING:
    from empatheia_people.curation.explaining import ExplainedDialogue
    from empatheia_people.curation.labelled_pairs import LabelledFilm

app = group("Make dialogue corpora out of subtitles and chats, on this machine or a cluster.")

FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="Of a run.")]
WorkersOption = Annotated[
    int | None, typer.Option(min=0, help="Worker processes; 0 = only this process, without Dask.")
]
SchedulerOption = Annotated[str | None, typer.Option(metavar="tcp://HOST:PORT", help="A Dask cluster to use.")]


@app.command("run")
def run_curation(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML file; see docs/howto/curate.md.")],
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the result; default runs/NAME.")] = None,
    only: Annotated[str | None, typer.Option(metavar="STAGE", help="Stop after this stage.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    r"""Read, cut, clean, label and rank; finished shards that still fit are kept.

    \b
    empatheia curate run recipes/curation/sample.yaml
    empatheia curate run mine.yaml --workers 8 --set shards=64
    empatheia curate run mine.yaml --scheduler tcp://node1:8786
    """
    given = [f"{name}={value}" for name, value in (("out", out), ("workers", workers)) if value is not None]
    settings = load_settings(config, [*(overrides or []), *given])
    if scheduler is not None:
        settings = settings.model_copy(update={"scheduler": scheduler})
    _run(settings, only, as_json)


@app.command("resume")
def resume_curation(
    folder: FolderArgument,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    as_json: JsonOption = False,
) -> None:
    r"""Continue a run that was stopped.

    \b
    empatheia curate resume runs/curation/sample
    """
    settings = settings_of(folder)
    changes = {"workers": workers, "scheduler": scheduler}
    _run(settings.model_copy(update={k: v for k, v in changes.items() if v is not None}), None, as_json)


@app.command("status")
def show_status(folder: FolderArgument, as_json: JsonOption = False) -> None:
    r"""Show which shards of a run are finished.

    \b
    empatheia curate status runs/curation/sample
    """
    states = stage_states(folder)
    if as_json:
        print_json([{"stage": stage, "done": done, "shards": n} for stage, done, n in states])
        return
    for stage, done, n in states:
        show(f"{stage:<10} {done:>6,} of {n:,} shards{'' if done == n else '   <- not finished'}")
    if any(done < n for _, done, n in states):
        say(f"continue with: empatheia curate resume {folder}")


@app.command("report")
def write_report(
    folder: FolderArgument,
    out: Annotated[Path | None, typer.Option(help="Page to write; default report.html in the folder.")] = None,
) -> None:
    r"""Write a page: counts after each step beside the paper's, lengths, labels, dropped lines, samples.

    \b
    empatheia curate report runs/curation/sample
    """
    show(str(write_page(folder, out or folder / "report.html")))


@app.command("sample")
def show_sample(
    folder: FolderArgument,
    n: Annotated[int, typer.Option("-n", "--n", min=1, help="How many dialogues of each part.")] = 3,
    part: Annotated[str | None, typer.Option(help="edos, os or all; default every part there is.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the choice.")] = 0,
    as_json: JsonOption = False,
) -> None:
    r"""Print some dialogues of the result.

    \b
    empatheia curate sample runs/curation/sample -n 2 --part edos
    """
    for row in sampled(folder, n, part, seed):
        if as_json:
            print_json(row)
            continue
        score = "" if row["emotionality"] is None else f"  emotionality {row['emotionality']:.3f}"
        print_lines([[(f"{row['key']}  {row['part']}/{row['split']}{score}", "bold")]])
        for i, text in enumerate(row["turns"]):
            label = f"  ({row['labels'][i]})" if row["labels"] else ""
            print_lines([[("  - ", "dim"), (visible(text), ""), (label, "cyan")]])


@app.command("explain")
def explain_file(
    folder: FolderArgument,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A file of the run (path or its end), FILM/SUBTITLE, or a dialogue's key."),
    ],
    line: Annotated[
        int | None, typer.Argument(metavar="[LINE]", min=1, help="Number of a sentence: show only its dialogue.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    r"""Show what happened to a file's sentences and why: turns, cuts, the step that dropped them, where they are now.

    \b
    empatheia curate explain runs/curation/sample the_ring.srt 3
    empatheia curate explain runs/curation/sample the_ring/the_ring/00001
    """
    found = explain(folder, file, line)
    if as_json:
        print_json(as_record(found))
        return
    show(found.place)
    if found.note:
        show(found.note)
    for dialogue in found.dialogues:
        _show_dialogue(dialogue)


def _show_dialogue(dialogue: ExplainedDialogue) -> None:
    print_lines([[(dialogue.key, "bold"), (f"  begins: {dialogue.why}", "")]])
    for turn in dialogue.turns:
        for one in turn.sentences:
            times = "-".join("?" if ms is None else f"{ms / 1000:.3f}" for ms in (one.start, one.end))
            print_lines(
                [[(f"  {one.line:>5}  {times}  ", "dim"), (visible(one.text), ""), (f"  ({one.turn})", "cyan")]]
            )
        if turn.dropped:
            print_lines([[(f"         dropped by {turn.dropped}", "yellow")]])
        elif turn.changed and turn.cleaned is not None:
            print_lines([[(f"         {', '.join(turn.changed)}: ", "yellow"), (visible(turn.cleaned), "")]])
    for key, fate in dialogue.outcome.items():
        print_lines([[(f"  -> {key}: {fate}", "green")]])
    if not dialogue.outcome:
        print_lines([[("  -> nothing is left of it", "yellow")]])


def _run(settings: Any, only: str | None, as_json: bool) -> None:
    if only is not None and only not in STAGES:
        raise ConfigError(f"unknown stage {only!r}.{nearest(only, list(STAGES))} Accepted: {', '.join(STAGES)}.")
    folder = settings.folder
    try:
        record = Curation(settings, say, told_shards()).run(only)
    except (Exception, KeyboardInterrupt):
        if (folder / "curation.yaml").is_file():
            say(f"finished stages are kept in {folder}; continue with: empatheia curate resume {folder}")
        raise
    if not record:
        return
    page = write_page(folder, folder / "report.html")
    if as_json:
        print_json(record)
        return
    for name, n in _funnel(record):
        show(f"{name:<24} {n:>12,}")
    show(f"{'digest':<24} {record['digest'][:16]}")
    say(f"corpus: {folder / 'corpus'}; report: {page}")


def _funnel(record: dict[str, Any]) -> list[tuple[str, int]]:
    return [(step.name, step.n) for step in funnel(record)]


@app.command("train-segmenter")
def train_segmenter(
    out: Annotated[Path, typer.Option(help="Folder for the segmenter.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of NAME.srt with NAME.truth.tsv; default srt/meld_episodes in EMPATHEIA_DATA."),
    ] = None,
    extra: Annotated[
        list[Path] | None,
        typer.Option(help="More to learn from, not measured on: Cornell, MELD, chats, subtitles with dashes."),
    ] = None,
    neural: Annotated[
        bool, typer.Option("--neural", help="Also measure a small network on the bundled encoder; takes minutes.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    r"""Train the segmenter of turns and compare it with the baselines on held-out films.

    \b
    empatheia curate train-segmenter --out segmenter
    empatheia curate train-segmenter --data srt/meld_episodes --extra cornell --out segmenter
    """
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file; name a folder for the segmenter.")
    found = data or next((root / "srt" for root in corpus_roots() if (root / "srt").is_dir()), Path("srt"))
    scorer: Any = None
    if neural:
        from empatheia_people.curation.neural_pairs import cross_validated_network

        scorer = cross_validated_network
    trained = train(read_films(found), _extra_films(extra or []), scorer, say)
    trained.segmenter.save(out)
    if as_json:
        print_json(trained.segmenter.facts)
        return
    for unit, row in trained.rows.items():
        show(f"{unit} ({next(iter(row.values())).n:,} pairs of films not learnt from)")
        show(f"  {'':<34}accuracy  95 % interval  balanced    MCC  F1 border  F1 same")
        for name, one in row.items():
            interval = f"{one.low:.4f} {one.high:.4f}"
            show(
                f"  {name:<34}{one.accuracy:8.4f}  {interval}  {one.balanced:8.3f} {one.mcc:6.3f}"
                f"  {one.f1_new:9.3f}  {one.f1_same:7.3f}"
            )
    say(f"written to {out}; use it with `segment: {{segmenter: {out}}}`")


def _extra_films(places: list[Path]) -> list[LabelledFilm]:
    films = []
    for source in find_sources(places).sources if places else []:
        try:
            films += [film.split() for script in source.scripts() for film in films_of_script(script)]
        except (OSError, UnreadableError) as error:
            say(f"{source.place}: {reason_of(error)}; left out")
    return films
