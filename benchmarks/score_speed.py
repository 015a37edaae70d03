"""Scores of one system's replies with 1,000 bootstrap resamples, beside nltk's BLEU computed anew for each resample."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from nltk.translate.bleu_score import corpus_bleu
from report import Measurement, arguments, measure, show

from empatheia.metrics import METRICS
from empatheia.replies.replies import SystemReply
from empatheia.replies.reply_files import read_replies, read_texts
from empatheia.replies.scoring import columns_of, score_replies
from empatheia_research.corpora.loading import sample_root

RELEASED = "peer_outputs/moel_repo_generation_result.txt.gz"
N_RESAMPLES = 1000


def replies(n: int) -> tuple[list[SystemReply], str]:
    """Replies of MoEL's released file where it is, else of the sample, repeated to ``n``; and where they are from."""
    released = Path(os.environ.get("EMPATHEIA_DATA", "")) / RELEASED
    path = released if released.is_file() else sample_root() / "replies" / "moel.txt"
    found = read_replies(path).of("MOE")
    return [found[i % len(found)] for i in range(n)], path.name


def naive_intervals(items: list[SystemReply], n_resamples: int) -> None:
    """Draws the replies anew and has nltk count them, once for each resample."""
    rng = np.random.default_rng(0)
    hypotheses = [item.reply.split() for item in items]
    references = [[(item.reference or "").split()] for item in items]
    for _ in range(n_resamples):
        drawn = rng.integers(0, len(items), len(items))
        corpus_bleu([references[i] for i in drawn], [hypotheses[i] for i in drawn])


def text_files(items: list[SystemReply]) -> None:
    """Two text files, read and scored with the default columns."""
    with tempfile.TemporaryDirectory() as folder:
        hyp, ref = Path(folder) / "hyp.txt", Path(folder) / "ref.txt"
        hyp.write_text("\n".join(item.reply for item in items) + "\n", encoding="utf-8")
        ref.write_text("\n".join(item.reference or "" for item in items) + "\n", encoding="utf-8")
        file = read_texts(hyp, ref)
        score_replies(file.of("hyp.txt"), columns_of(), N_RESAMPLES)


def main() -> None:
    """Times each way and prints the table; an item is a reply with its share in all the resamples."""
    parser = arguments(__doc__ or "", n=5259, n_naive=4)
    options, _ = parser.parse_known_args()  # `make bench ARGS=...` gives all benchmarks the same options
    items, source = replies(options.n)
    names = [name for name in METRICS.names() if score_replies(items[:50], columns_of(metrics=[name]), 0)[0]]
    bleu, every, default = columns_of(metrics=["bleu_nltk_4"]), columns_of(metrics=names), columns_of()
    naive_items = max(1, options.n * options.naive_n // (N_RESAMPLES + 1))
    rows = [
        measure(f"all {len(names)} metrics", lambda: score_replies(items, every, N_RESAMPLES), options.n),
        measure("default table", lambda: score_replies(items, default, N_RESAMPLES), options.n),
        measure("default table, from text files", lambda: text_files(items), options.n),
        measure("bleu_nltk_4 alone", lambda: score_replies(items, bleu, N_RESAMPLES), options.n),
        measure("bleu_nltk_4, nltk in each resample", lambda: naive_intervals(items, options.naive_n), naive_items),
    ]
    show("scores with intervals", rows, options.json, replies=options.n, resamples=N_RESAMPLES, source=source)
    if not options.json:
        print(f"  {rows[0].way}: {seconds(rows[0]):.1f} s of processor time for {options.n:,} replies; goal 10 s")


def seconds(row: Measurement) -> float:
    """Processor time, which other work on the machine does not lengthen."""
    return row.processor_seconds or row.seconds


if __name__ == "__main__":
    main()
