"""Why a number of ours differs from print by more than the tolerance: what was tried, or else what is known to differ.

What somebody found out stands in ``reasons.yaml`` (``differences``), with the experiment that shows it where there was
one. Without an entry the run itself is asked: how much shorter it was than its recipe's full size, and whether the
validation loss was still falling when it ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from empatheia.errors import EmpatheiaError
from empatheia.metrics.published import Published, Verdict
from empatheia_research.recipes.queue import queued_anew
from empatheia_research.recipes.recipe import Recipe, load_recipe
from empatheia_research.reports.curves import curves_of, last_fall, read_curves
from empatheia_research.reports.targets import Target, Why, found_difference
from empatheia_research.shipped import recipes_root

_IS_FLAT = 0.001
"""A fall of a validation loss by a smaller share is none."""
_LOSS_OF = (("ppl_", "words"), ("bleu_", "words"), ("dist_", "words"), ("bertscore_", "words"), ("accuracy", "emotion"))
"""Beginning of a score's name, and the validation loss it follows."""


_SCRATCH = "an encoder from scratch"


def why_of(number: Published, verdict: Verdict, target: Target, records: Sequence[Mapping[str, Any]]) -> Why | None:
    """What is known of a difference from print, or of what cannot be compared.

    Args:
        number: What was printed.
        verdict: Ours beside it.
        target: The recipe.
        records: Of the runs behind the value.

    Returns:
        None where the value is met, or where the verdict says all there is.
    """
    if verdict.verdict == "met":
        return None
    size = str(records[0]["size"])
    why, is_old = found_difference(number, target.recipe, size), any(map(queued_anew, records))
    if why is None and verdict.verdict == "missed":
        facts = [*_still_falling(records[0], verdict.score)]
        facts = facts if is_old else [*_shorter(target.file, records[0]), *facts]
        facts = facts or ["nothing was looked into"]
        why = Why("; ".join(facts))
    if verdict.is_comparable and is_old:
        told = "the record is of an earlier recipe and is queued to be made anew"
        return Why(told) if why is None else Why(f"{told}; {why.text}", why.shown_by, why.see)
    return why


def _shorter(file: Path, record: Mapping[str, Any]) -> Iterator[str]:
    """What a smaller size leaves out of its recipe's full one."""
    size = str(record["size"])
    try:
        own, full = load_recipe(file, size), load_recipe(file, "full")
    except EmpatheiaError:
        return
    if size == "full":
        return
    if not own.stages and (start := (record.get("start") or {}).get("recipe")):
        yield f"the weights are those of {start}"
        yield from _shorter(recipes_root() / f"{start}.yaml", {"size": size})
        return
    passes = [
        f"{stage.name} {_length(stage)} in place of {_length(whole)}"
        for stage in own.stages
        for whole in full.stages
        if stage.name == whole.name and _length(stage) != _length(whole)
    ]
    if passes:
        yield f"size {size} trains shorter ({', '.join(passes)})"
    if (encoder := _encoder(own)) != _encoder(full):
        yield f"{encoder or _SCRATCH} in place of {_encoder(full) or _SCRATCH}"


def _length(stage: Any) -> str:
    if stage.max_steps is not None:
        return f"{stage.max_steps:,} updates"
    return f"{stage.epochs:g} pass{'' if stage.epochs == 1 else 'es'}"


def _encoder(recipe: Recipe) -> str:
    return recipe.encoder or ""


def _still_falling(record: Mapping[str, Any], score: str) -> Iterator[str]:
    """How much the validation loss behind a score fell between the last two validations of its run."""
    try:
        file = curves_of(Path(str(record.get("file", ""))))
        stages = read_curves(file) if file is not None else {}
    except EmpatheiaError:
        return
    wanted = next((name for start, name in _LOSS_OF if score.startswith(start)), "loss")
    for loss in dict.fromkeys((wanted, "loss")):
        if (found := last_fall(stages, loss)) is not None:
            fall, before, end = found
            told = f"still fell by {100 * fall:.1f} %" if fall > _IS_FLAT else "no longer fell"
            of = "" if loss == "loss" else f" of {loss}"
            yield f"the validation loss{of} {told} from update {before:,} to {end:,}"
            return
