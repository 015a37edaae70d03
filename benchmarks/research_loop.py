"""Training and greedy replies beside the loop of the released research code, in the same process on the same examples.

The released code of MoEL and its kin trains on 16 examples at a time in random order, scores every padded word of the
reply, builds a table of smoothed targets and lets MoEL's listeners speak one after the other; it answers one context
at a time and reads the whole reply again for each word. Both ways use our modules at the same sizes with the same
weights, so what differs is the loop.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from report import arguments, measure, show

from empatheia.taxonomy import IGNORED
from empatheia.text.batching import TokenBatchSampler
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.responders.seq2seq import smoothed_target
from empatheia_research.text.collation import Collator
from empatheia_research.training.evaluation import context_features
from empatheia_research.training.tasks.respond import RespondTask

SYSTEMS = {
    "transformer": "moel/trs",
    "moel": "moel/moel",
    "mime": "mime/mime",
    "empdg": "empdg/empdg",
    "cem": "cem/cem",
}
RECIPES = Path(__file__).parents[1] / "recipes"
BATCH_TOKENS = 4096


class Bench:
    """One system with the examples of the self-written sample or of a corpus, and both loops.

    Args:
        name: Key of ``SYSTEMS``.
        size: Of the recipe: ``smoke`` needs no data, ``cpu`` has the real vocabulary.
        n: Training examples.
        folder: For the run's files.
    """

    def __init__(self, name: str, size: str, n: int, folder: Path) -> None:
        recipe = load_recipe(RECIPES / f"{SYSTEMS[name]}.yaml", size)
        self.task = RespondTask(recipe, folder / name)
        self.model: Any = self.task.model
        self.pad_id = self.task.tokenizer.pad_id
        found = [item for item in self.task.encode(recipe.data, "train", with_extras=False) if item.labels]
        self.items = [found[i % len(found)] for i in torch.randperm(max(n, len(found)))[:n].tolist()]
        self.n_tokens = sum(len(item.input_ids) + len(item.labels or ()) for item in self.items)
        features = [f for f in self.model.features if f in {*context_features(self.model), "labels", "emotion_labels"}]
        self.collate = Collator(features, self.pad_id, self.task.side_inputs)
        self.context = Collator(context_features(self.model), self.pad_id, self.task.side_inputs)
        generator = [p for name, p in self.model.named_parameters() if not name.startswith("discriminators")]
        self.parameters = generator

    def train(self) -> None:
        """Our loop: batches of like length, words that count alone scored, one fused update."""
        self.model.train()
        optimizer = torch.optim.AdamW(self.parameters, lr=1e-4, fused=True)
        lengths = [max(len(item.input_ids), len(item.labels or ())) for item in self.items]
        for indices in TokenBatchSampler(lengths, BATCH_TOKENS, shuffle=True, seed=0):
            losses = self.model(**self.collate([self.items[i] for i in indices])).losses
            (losses["words"] + losses.get("emotion", 0.0)).backward()
            optimizer.step()
            optimizer.zero_grad()

    def train_as_released(self) -> None:
        """16 examples in random order, a table of smoothed targets for every padded word, a reading of each loss."""
        self.model.train()
        optimizer = torch.optim.Adam(self.parameters, lr=1e-4, foreach=False)
        for start in range(0, len(self.items), 16):
            batch = self.collate(self.items[start : start + 16])
            labels = batch["labels"]
            out = self._scored(batch)
            log_p = out.logits.log_softmax(-1).flatten(0, 1)
            targets = labels.flatten().masked_fill(labels.flatten().eq(IGNORED), self.pad_id)
            wanted = smoothed_target(targets, log_p.shape[-1], self.pad_id, 0.1)
            loss = F.kl_div(log_p, wanted, reduction="sum")
            if out.emotion_logits is not None:
                loss = loss + F.cross_entropy(out.emotion_logits, batch["emotion_labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()

    def _scored(self, batch: dict[str, Any]) -> Any:
        """Scores of all padded words; MoEL's listeners one after the other."""
        known = {name: value for name, value in batch.items() if name not in self.model.gold_features}
        inputs = self.model.shift_right(batch["labels"])
        listeners = getattr(self.model.decoder, "listeners", None)
        if listeners is None:
            return self.model(**known, decoder_input_ids=inputs)
        plain, n = type(listeners).forward, listeners.n_experts

        def one_after_the_other(states: Any, memory: Any, keep: Any, routing: Any, cache: Any = None) -> Any:
            every = [
                plain(
                    listeners, states, memory, keep, type(routing).of(torch.full_like(routing.ids[:, :1], i), n), None
                )
                for i in range(n)
            ]
            heard = torch.cat(every, dim=1)  # (batch, 32, target, width)
            return heard.gather(1, routing.ids[:, :, None, None].expand(-1, -1, *heard.shape[2:]))

        listeners.forward = one_after_the_other
        try:
            return self.model(**known, decoder_input_ids=inputs)
        finally:
            del listeners.forward

    @torch.inference_mode()
    def answer(self, n: int) -> None:
        """Our decoding: 64 contexts at a time, with the cache."""
        self.model.eval()
        items = sorted(self.items[:n], key=lambda item: len(item.input_ids))
        for start in range(0, len(items), 64):
            batch = self.context(items[start : start + 64])
            self.model.generate(**batch, max_new_tokens=30, min_new_tokens=30, do_sample=False)

    @torch.inference_mode()
    def answer_as_released(self, n: int) -> None:
        """One context at a time; every word reads the whole reply so far."""
        self.model.eval()
        for item in self.items[:n]:
            batch = self.context([item])
            ids = torch.full((1, 1), self.model.config.decoder_start_token_id)
            encoding = self.model.encode(**batch)
            for _ in range(30):
                out = self.model(
                    attention_mask=batch["attention_mask"], decoder_input_ids=ids, encoder_outputs=encoding
                )
                ids = torch.cat((ids, out.logits[:, -1].argmax(-1, keepdim=True)), dim=1)


def main() -> None:
    """Times both loops of each system; an item is a token in training, a reply of 30 pieces in answering."""
    parser = arguments(__doc__ or "", n=512, n_naive=128)
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="of: %(default)s")
    parser.add_argument("--size", default="cpu", help="of the recipes; smoke needs no data (default %(default)s)")
    options, _ = parser.parse_known_args()
    torch.set_num_threads(options.threads)
    for name in options.systems.split(","):
        with tempfile.TemporaryDirectory() as folder:
            compare(name, options, Path(folder))


def compare(name: str, options: argparse.Namespace, folder: Path) -> None:
    """Both loops of one system, training and answering."""
    few, many = (Bench(name, options.size, n, folder) for n in (options.naive_n, options.n))
    few.train()  # warm
    few.train_as_released()
    rows = [
        measure("train", many.train, many.n_tokens),
        measure("train, released loop", few.train_as_released, few.n_tokens),
    ]
    show(f"{name}: training tokens", rows, options.json, parameters=many.model.num_parameters())
    n_few = max(1, options.naive_n // 16)
    many.answer(8)
    few.answer_as_released(1)
    rows = [
        measure("answer, 64 at a time, cached", lambda: many.answer(options.n), options.n),
        measure("answer, one at a time, no cache", lambda: few.answer_as_released(n_few), n_few),
    ]
    show(f"{name}: replies", rows, options.json, words=many.model.config.vocab_size)


if __name__ == "__main__":
    main()
