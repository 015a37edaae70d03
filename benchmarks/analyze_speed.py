"""Sentences a second of ``analyze``: in batches, and a naive loop (one at a time)."""

from __future__ import annotations

import torch
from report import arguments, contexts, measure, show

from empatheia import Listener


def main() -> None:
    parser = arguments(__doc__, n=10_000, n_naive=200)
    parser.add_argument("--model", default="gao2021-small", help="name or folder of a model")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    listener = Listener.load(options.model)
    dialogues, source = contexts(options.n)
    sentences = [dialogue.turns[-1].text for dialogue in dialogues]
    few = sentences[: options.naive_n]
    listener.analyze(few[:2])  # warm

    rows = [
        measure("64 together", lambda: listener.analyze(sentences, batch_size=64), len(sentences)),
        measure("each by itself", lambda: listener.analyze(sentences), len(sentences)),
        measure("naive: one at a time", lambda: [listener.analyze(one) for one in few], len(few)),
    ]
    show("analyze", rows, options.json, model=listener.name, sentences=source, threads=torch.get_num_threads())


if __name__ == "__main__":
    main()
