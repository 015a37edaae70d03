"""Texts a second of a classifier: in batches of like length, and with a plain ``transformers.pipeline``.

The model is a trained folder, or a small encoder with a fresh head (its answers mean nothing, its speed is the same).
All ways run the same weights on the same texts in turns, as many times as there are rounds; a ratio is of neighbours in
time. Processor time is shown too: on a busy machine it says more than the clock. Ends with an error if the labels, or
probabilities by more than 1e-5, are not the same.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import Measurement, arguments, contexts, measure, show
from transformers import pipeline
from transformers.utils import logging

from empatheia.taxonomy import LABELS_41
from empatheia_research.understanding.labels.classifier import PROCESSOR_BATCH_TOKENS, TextClassifier
from empatheia_research.understanding.labels.utterance_classifier import UtteranceClassifier

TOLERANCE = 1e-5


def fresh_folder(encoder: str, folder: Path) -> Path:
    """A classifier of 41 labels with a random head on a pretrained encoder, saved."""
    from empatheia.resources import resolve_model

    torch.manual_seed(0)
    model, reader = UtteranceClassifier.from_encoder(str(resolve_model(encoder)), LABELS_41)
    model.save_pretrained(folder)
    reader.save(folder)
    return folder


def main() -> None:
    parser = arguments(__doc__, n=10_000, n_naive=1_000)
    parser.add_argument("--model", help="folder of a trained utterance_classifier (default: fresh head on --encoder)")
    parser.add_argument("--encoder", default="minilm", help="encoder of the fresh model (default %(default)s)")
    parser.add_argument("--batch-tokens", type=int, default=PROCESSOR_BATCH_TOKENS, help="padded tokens a pass")
    parser.add_argument(
        "--pipeline-batch", type=int, default=32, help="batch_size of the second pipeline (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="times that all ways are gone through (%(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.set_verbosity_error()
    logging.disable_progress_bar()

    with tempfile.TemporaryDirectory() as place:
        folder = options.model or fresh_folder(options.encoder, Path(place))
        classifier = TextClassifier.load(folder)
        if classifier.model.config.model_type != "utterance_classifier":
            parser.error(f"--model {folder}: a pipeline needs an utterance_classifier")
        plain: Any = pipeline("text-classification", model=str(folder), top_k=None, device="cpu")
    dialogues, source = contexts(options.n)
    texts = [dialogue.turns[-1].text for dialogue in dialogues]
    few = list(dict.fromkeys(texts))[: options.naive_n]  # all different: an answer given twice is no speed
    classifier.classify_texts(few[:8])  # warm
    plain(few[:8], truncation=True, batch_size=options.pipeline_batch)

    found: dict[str, Any] = {}
    ways: dict[str, Callable[[], Any]] = {
        "batched, like lengths together": lambda: classifier.classify_texts(few, batch_tokens=options.batch_tokens),
        f"transformers.pipeline, batch_size={options.pipeline_batch}": lambda: plain(
            few, truncation=True, batch_size=options.pipeline_batch
        ),
        "naive: transformers.pipeline, one at a time": lambda: [plain([text], truncation=True)[0] for text in few],
    }
    ours, _, naive = ways
    seen: dict[str, list[Measurement]] = {way: [] for way in ways}
    for number in range(options.rounds):
        for way in list(ways)[:: 1 if number % 2 else -1]:  # to and fro, so that no way always has the better moment
            seen[way].append(measure(way, partial(_keep, found, way, ways[way]), len(few)))
    rows = [total(way, seen[way]) for way in ways]
    rows.insert(0, measure("batched, all texts", lambda: classifier.classify_texts(texts), len(texts)))

    expected = found[ours]
    wrong, difference = 0, 0.0
    for way in list(ways)[1:]:
        scores = [{entry["label"]: entry["score"] for entry in row} for row in found[way]]
        theirs = np.array([[row[name] for name in classifier.labels] for row in scores])
        wrong += int((theirs.argmax(1) != expected.argmax(1)).sum())
        difference = max(difference, float(np.abs(theirs - expected).max()))
    by_clock = [b.seconds / a.seconds for a, b in zip(seen[ours], seen[naive], strict=True)]
    by_processor = [b.processor_seconds / a.processor_seconds for a, b in zip(seen[ours], seen[naive], strict=True)]
    show(
        "classify",
        rows,
        options.json,
        model=options.model or f"fresh head on {options.encoder}",
        texts=source,
        threads=torch.get_num_threads(),
        rounds=options.rounds,
        times_naive=spread(by_clock),
        times_naive_by_processor_time=spread(by_processor),
        other_labels=wrong,
        largest_difference=f"{difference:.1e}",
    )
    if wrong or difference > TOLERANCE:
        raise SystemExit(f"the outputs differ: {wrong} labels, probabilities by up to {difference:.1e}")


def _keep(found: dict[str, Any], way: str, work: Callable[[], Any]) -> None:
    found[way] = work()


def total(way: str, rounds: list[Measurement]) -> Measurement:
    """The rounds of one way as one measurement."""
    seconds, processor = sum(row.seconds for row in rounds), sum(row.processor_seconds for row in rounds)
    return Measurement(way, sum(row.n for row in rounds), seconds, processor)


def spread(ratios: list[float]) -> str:
    """Median, lowest and highest of the rounds."""
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    main()
