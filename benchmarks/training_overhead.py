"""Training: share of the time outside forward, backward and update, beside a naive loop (batch 1)."""

from __future__ import annotations

import contextlib
import copy
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from report import Measurement, arguments, measure, show

from empatheia.errors import MissingResourceError
from empatheia_research.corpora import empathetic_dialogues
from empatheia_research.recipes.recipe import StageConfig, load_recipe
from empatheia_research.training.stages import StageData, run_stage
from empatheia_research.training.tasks import make_task

RECIPE = Path(__file__).parents[1] / "recipes" / "default" / "listener.yaml"
SAMPLE = ["data.corpus=sample", "data.spans=none", "tokenizer.size=800", "tokenizer.distil=null"]


def naive_loop(model: torch.nn.Module, data: StageData, stage: StageConfig, n: int) -> None:
    """One example at a time, in file order."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=stage.learning_rate)
    model.train()
    for i in range(n):
        losses = model(**data.collator([data.train[i % len(data.train)]])).losses
        loss = sum(weight * losses[name] for name, weight in stage.losses.items() if name in losses)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    parser = arguments(__doc__, n=60, n_naive=60)
    parser.add_argument("--recipe", default=str(RECIPE), help="its last stage is timed")
    parser.add_argument("--size", default="cpu", help="size of the recipe; smoke reads the sample")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    overrides, source = SAMPLE, "bundled sample"
    if options.size != "smoke":
        with contextlib.suppress(MissingResourceError):
            empathetic_dialogues.load("valid")
            overrides, source = ["data.train_limit=2000"], "EmpatheticDialogues, 2,000 dialogues"
    recipe = load_recipe(options.recipe, size=options.size, overrides=overrides)
    changes = {"max_steps": options.n, "evaluations": 0, "select": None, "warmup_steps": 0}
    stage = recipe.stages[-1].model_copy(update=changes)
    recipe = recipe.model_copy(update={"stages": (stage,)})

    seen = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        task = make_task(recipe, Path(folder))
        data = task.stage_data(stage)

        def counted(items: list) -> dict:
            nonlocal seen
            seen += len(items)
            return data.collator(items)

        twin = copy.deepcopy(task.model)
        result = run_stage(
            task.model,
            stage,
            replace(data, collator=counted, valid=[], valid_lengths=[]),
            folder=Path(folder) / "checkpoints",
            curves=Path(folder) / "curves.jsonl",
            seed=recipe.seed,
            show_progress=False,
        )
        naive = measure(
            "naive: one example at a time",
            lambda: naive_loop(twin, data, stage, options.naive_n),
            options.naive_n,
        )
    spent = result.seconds
    outside = 1 - (spent["forward_backward"] + spent["update"]) / spent["total"]
    rows = [Measurement(f"Trainer, {result.steps} updates", seen, spent["total"]), naive]
    facts = {
        "recipe": recipe.name,
        "data": source,
        "outside": round(outside, 4) if options.json else f"{outside:.1%}",
    }
    show("training", rows, options.json, **facts)


if __name__ == "__main__":
    main()
