"""Texts a second of a classifier: in batches of like length, and in a plain ``transformers.pipeline`` loop.

The model is a trained folder, or a small encoder with a fresh head (its answers mean nothing, its speed is the same).
Both ways run the same weights on the same texts, and their probabilities are compared.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import arguments, contexts, measure, show
from transformers import pipeline
from transformers.utils import logging

from empatheia.taxonomy import LABELS_41
from empatheia.understanding.classification import TextClassifier
from empatheia.understanding.utterance_classifier import UtteranceClassifier


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
    parser.add_argument("--batch-tokens", type=int, default=2048, help="padded tokens a pass (default %(default)s)")
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
    few = texts[: options.naive_n]
    classifier.classify_texts(few[:2])  # warm
    plain(few[:2], truncation=True)

    found: dict[str, Any] = {}

    def batched() -> None:
        found["batched"] = classifier.classify_texts(texts, batch_tokens=options.batch_tokens)

    def loop() -> None:
        found["loop"] = [plain([text], truncation=True)[0] for text in few]

    rows = [
        measure("batched, like lengths together", batched, len(texts)),
        measure("naive: transformers.pipeline, one at a time", loop, len(few)),
    ]
    scores = [{entry["label"]: entry["score"] for entry in row} for row in found["loop"]]
    looped = np.array([[row[name] for name in classifier.labels] for row in scores])
    difference = float(np.abs(looped - found["batched"][: len(few)]).max())
    show(
        "classify",
        rows,
        options.json,
        model=options.model or f"fresh head on {options.encoder}",
        texts=source,
        threads=torch.get_num_threads(),
        largest_difference=f"{difference:.1e}",
    )


if __name__ == "__main__":
    main()
