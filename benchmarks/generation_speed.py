"""Replies a second: greedy in batches, one at a time, and a naive loop (batch 1, no cache)."""

from __future__ import annotations

import torch
from report import arguments, contexts, measure, show

from empatheia import Listener


def main() -> None:
    parser = arguments(__doc__, n=1024, n_naive=32)
    parser.add_argument("--model", default="gao2021-small", help="name or folder of a model")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    listener = Listener.load(options.model)
    dialogues, source = contexts(options.n)
    few = dialogues[: options.naive_n]
    listener.respond(few[:2])  # warm

    rows = [
        measure("greedy, batched", lambda: listener.respond(dialogues), len(dialogues)),
        measure("greedy, one at a time", lambda: [listener.respond(one) for one in few], len(few)),
    ]
    listener.network.generation_config.use_cache = False
    rows.append(measure("naive: one at a time, no cache", lambda: [listener.respond(one) for one in few], len(few)))
    show(
        "generation",
        rows,
        options.json,
        model=listener.name,
        contexts=source,
        threads=torch.get_num_threads(),
    )


if __name__ == "__main__":
    main()
