"""``empatheia curate``: dialogues out of subtitles and chats, and the segmenter that finds the turns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from empatheia.cli.output import print_json, say, show

if TYPE_CHECKING:
    from empatheia.curation.labelled_pairs import LabelledFilm

app = typer.Typer(
    help="Make dialogue corpora out of subtitles and chats, on this machine or a cluster.",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("train-segmenter")
def train_segmenter(
    out: Annotated[Path, typer.Option(help="Folder for the segmenter.")],
    data: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Folder of NAME.srt with NAME.truth.tsv; default srt/meld_episodes in EMPATHEIA_DATA."),
    ] = None,
    extra: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(help="More to learn from, not measured on: Cornell, MELD, chats, subtitles with dashes."),
    ] = None,
    neural: Annotated[
        bool, typer.Option("--neural", help="Measure a small network on the bundled encoder beside it; takes minutes.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    r"""Train the segmenter of turns, and measure it on films it has not seen, beside the baselines.

    \b
    empatheia curate train-segmenter --out segmenter
    empatheia curate train-segmenter --data srt/meld_episodes --extra cornell --out segmenter
    """
    from empatheia.curation.labelled_pairs import read_films
    from empatheia.curation.segmenter_training import train
    from empatheia.errors import DataError
    from empatheia.resources import corpus_roots

    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file; name a folder for the segmenter.")
    found = data or next((root / "srt" for root in corpus_roots() if (root / "srt").is_dir()), Path("srt"))
    scorer: Any = None
    if neural:
        from empatheia.curation.neural_pairs import cross_validated_network

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
    from empatheia.curation.labelled_pairs import films_of_script
    from empatheia.curation.sources import find_sources, reason_of
    from empatheia.reading import UnreadableError

    films = []
    for source in find_sources(places).sources if places else []:
        try:
            films += [film.split() for script in source.scripts() for film in films_of_script(script)]
        except (OSError, UnreadableError) as error:
            say(f"{source.place}: {reason_of(error)}; left out")
    return films
