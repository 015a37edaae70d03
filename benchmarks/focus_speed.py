"""Pieces a second of focused replies (the true context and two distractors) beside plain ones to the same dialogues.

Three contexts are read for each reply instead of one, so a third is the floor of arithmetic; the goal is 0.30. Both
ways write replies of the same length, in turns; the ratio is of processor time, its median over the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from report import contexts, measure
from torch import Tensor
from transformers import BartConfig, BartForConditionalGeneration

from empatheia.records.dialogue import Dialogue
from empatheia_research.decoding.focus import focused_generate
from empatheia_research.decoding.worlds import Worlds
from empatheia_research.responders import RESPONDERS

WORDS = 24_000
GOAL = 0.30
WAYS = {"greedy": {"num_beams": 1}, "beam 5": {"num_beams": 5}}


def make_responder(words: int = WORDS) -> Any:
    """The Transformer of MoEL's paper at the size its recipe trains, with random weights."""
    torch.manual_seed(0)
    made = RESPONDERS.get("multi_trs")
    return made(made.config_class(vocab_size=words, emotion_head=False)).eval()


def make_bart(words: int = WORDS) -> Any:
    """BART, 3 + 3 layers of width 256."""
    torch.manual_seed(0)
    sizes = {"encoder_layers": 3, "decoder_layers": 3, "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024}
    sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "vocab_size": words}
    return BartForConditionalGeneration(BartConfig(d_model=256, **sizes, forced_eos_token_id=None)).eval()


MODELS: dict[str, Callable[[int], Any]] = {"responder": make_responder, "bart": make_bart}


def make_worlds(dialogues: Sequence[Dialogue], words: int = WORDS) -> Worlds:
    """Contexts as numbers of their words, at most 100; in each distractor two words of the last turn are others."""
    rows = []
    for dialogue in dialogues:
        texts = [turn.text.lower().split() for turn in dialogue.turns]
        true = [6 + zlib.crc32(word.encode()) % (words - 6) for text in texts for word in text][-100:]
        rows.append(true)
        for world in (1, 2):
            other = list(true)
            for place in (-1, -len(other) // 2):
                other[place] = 6 + (other[place] + 7 * world) % (words - 6)
            rows.append(other)
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return Worlds({"input_ids": ids, "attention_mask": ids.ne(0)}, 3)


def compare(model: Any, batches: Sequence[Worlds], options: dict[str, Any], rounds: int) -> dict[str, float]:
    """Both ways, in turns."""

    def plain() -> list[Tensor]:
        return [model.generate(**worlds.true(), **options) for worlds in batches]

    def focused() -> list[Tensor]:
        return [focused_generate(model, worlds, **options) for worlds in batches]

    n_pieces = options["max_new_tokens"] * sum(worlds.n_examples for worlds in batches)
    focused_generate(model, batches[0], **{**options, "max_new_tokens": 2, "min_new_tokens": 2})  # warm
    seconds: list[tuple[float, float]] = []
    for _ in range(rounds):
        first, second = measure("plain", plain, n_pieces), measure("focused", focused, n_pieces)
        seconds.append((first.processor_seconds or first.seconds, second.processor_seconds or second.seconds))
    ratios = [a / b for a, b in seconds]
    return {
        "plain_per_second": n_pieces / statistics.median(a for a, _ in seconds),
        "focused_per_second": n_pieces / statistics.median(b for _, b in seconds),
        "ratio": statistics.median(ratios),
        "least_ratio": min(ratios),
    }


def main() -> None:
    """Times each model, way and batch size, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=64, help="dialogues for each batch size (default %(default)s)")
    parser.add_argument("--batches", default="1,16,64", help="dialogues at once (default %(default)s)")
    parser.add_argument("--models", default=",".join(MODELS), help="of %(default)s")
    parser.add_argument("--length", type=int, default=16, help="pieces of a reply (default %(default)s)")
    parser.add_argument("--words", type=int, default=WORDS, help="vocabulary (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of each (default %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="processor threads (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options, _ = parser.parse_known_args()  # `make bench ARGS=...` gives all benchmarks the same options
    torch.set_num_threads(options.threads)

    dialogues, source = contexts(options.n)
    rows = []
    for name in options.models.split(","):
        model = MODELS[name](options.words)
        for size in map(int, options.batches.split(",")):
            n = min(options.n, max(4, size))  # few dialogues show as much one by one
            batches = [make_worlds(dialogues[i : min(i + size, n)], options.words) for i in range(0, n, size)]
            for way, search in WAYS.items():
                length = {"max_new_tokens": options.length, "min_new_tokens": options.length}
                found = compare(model, batches, {**length, **search, "do_sample": False}, options.rounds)
                rows.append({"model": name, "way": way, "batch": size, "n": n, **found})
                if not options.json:
                    print(line(rows[-1]) if len(rows) > 1 else f"{heading(source)}\n{line(rows[-1])}", flush=True)
    if options.json:
        print(json.dumps({"benchmark": "focus", "threads": options.threads, "contexts": source, "ways": rows}))


def heading(source: str) -> str:
    names = ("plain/s", "focused/s", "ratio", "least")
    return f"focus ({source}; pieces a second of processor time; goal {GOAL})\n{'':<32}" + "".join(
        f"{name:>12}" for name in names
    )


def line(row: dict[str, Any]) -> str:
    values = f"{row['plain_per_second']:>12.1f}{row['focused_per_second']:>12.1f}"
    label = f"{row['model']}, {row['way']}, batch {row['batch']}"
    return f"{label:<32}{values}{row['ratio']:>12.3f}{row['least_ratio']:>12.3f}"


if __name__ == "__main__":
    main()
