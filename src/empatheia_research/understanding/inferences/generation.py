"""Generation: any encoder-decoder asked in COMET's prompt form (Hwang et al. 2021; Chen et al. 2022, section 3.3).

The released COMET-BART is asked ``head relation [GEN]`` with five beams and five returned sequences. ``[GEN]`` is never
added to a tokenizer: either the checkpoint has it or it is read as pieces, as its training read it. Whatever a
checkpoint says about lengths is overridden: bart-large's stock settings forbid tails of one word.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from empatheia.errors import CheckpointError, ConfigError
from empatheia.reading import read_record
from empatheia.resources import resolve_model
from empatheia.taxonomy import EMPTY, NOT_COVERED, ONLY_NONE, RELATIONS
from empatheia.text.batching import BucketBatchSampler
from empatheia_research.pretrained import load_pretrained
from empatheia_research.understanding.fingerprints import fingerprint_of
from empatheia_research.understanding.inferences.provider import Answer, Progress, Tails, asked_relations, clean_tails
from empatheia_research.understanding.vectors.texts import usable_device, weights_fingerprint

PROMPT = "{head} {relation} [GEN]"
"""Of the released demonstration checkpoint; the one behind the paper's table was trained without ``[GEN]``."""
WINDOW = 512
_MOST_PIECES = 512


class GeneratedInferences:
    """A provider that writes tails.

    Args:
        model: Encoder-decoder; put into evaluation mode.
        tokenizer: Its own, with a padding piece.
        name: For records.
        weights: Hash of its files.
        prompt: With ``{head}`` and ``{relation}``.
        beams: Of the search; at least ``n`` are used.
        max_new_tokens: Longest tail, in pieces.
        max_pieces: Longest prompt; of a longer one the first words of the head are left out. None = what the model
            allows, at most 512.
        source: Whose knowledge the model was trained on, with its licence.
        device: Where it runs; None = the processor.

    Raises:
        ConfigError: A setting is out of range.
    """

    settings: ClassVar[tuple[str, ...]] = ("prompt", "beams", "max_new_tokens", "max_pieces", "source")
    """Options of :meth:`load`."""
    stride = 12

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str = "seq2seq",
        weights: str = "",
        *,
        prompt: str = PROMPT,
        beams: int = 5,
        max_new_tokens: int = 24,
        max_pieces: int | None = None,
        source: str = "",
        device: str | torch.device | None = None,
    ) -> None:
        for option, value in (("beams", beams), ("max_new_tokens", max_new_tokens)):
            if value < 1:
                raise ConfigError(f"inferences: {option} is {value}; accepted: at least 1.")
        try:
            filled = prompt.format(head="H", relation="R")
        except (KeyError, IndexError, ValueError):
            filled = ""
        if "H" not in filled or "R" not in filled:
            raise ConfigError(f"inferences: prompt is {prompt!r}; it must hold {{head}} and {{relation}}, once each.")
        placed: Any = model.eval()
        self.model = placed.to(usable_device(device))
        self.tokenizer = tokenizer
        self.name = name
        self.source = source
        self.prompt = prompt
        self.beams = beams
        self.max_new_tokens = max_new_tokens
        limit = getattr(model.config, "max_position_embeddings", None) or _MOST_PIECES
        self.max_pieces = max_pieces or min(limit, tokenizer.model_max_length, _MOST_PIECES)
        self._weights = weights
        unknown = tokenizer.unk_token_id
        whole = [r for r in RELATIONS if tokenizer.convert_tokens_to_ids(r) not in (None, unknown)]
        self._covered = tuple(whole or RELATIONS)

    @classmethod
    def load(
        cls, folder: str | Path, *, prompt: str | None = None, device: str | torch.device | None = None, **settings: Any
    ) -> GeneratedInferences:
        """From a model folder or name.

        Args:
            folder: An encoder-decoder that transformers can read.
            prompt: None = ``prompt`` in the folder's ``empatheia.json``, else :data:`PROMPT`.
            device: Where it runs; None = the processor.
            **settings: See the class.

        Raises:
            MissingResourceError: There is no such model on this machine.
            CheckpointError: The folder holds no encoder-decoder, or lacks weights.
            ConfigError: A setting is out of range.
        """
        path = resolve_model(folder)
        problem = f"cannot read an encoder-decoder and its tokenizer from {str(folder)!r}"
        config = load_pretrained(AutoConfig, path, problem)
        if not config.is_encoder_decoder:
            raise CheckpointError(
                f"{problem}: it is a {config.model_type!r}, not an encoder-decoder such as bart or t5."
            )
        model, info = load_pretrained(
            AutoModelForSeq2SeqLM, path, problem, dtype=torch.float32, output_loading_info=True
        )
        tokenizer = load_pretrained(AutoTokenizer, path, problem)
        if missing := sorted(info["missing_keys"]):
            raise CheckpointError(f"{str(folder)!r} lacks {len(missing)} weights, first {missing[0]!r}.")
        try:
            said = read_record(path / "empatheia.json")
        except (OSError, ValueError):
            said = {}
        settings.setdefault("source", str(said.get("source", "")))
        form = str(prompt or said.get("prompt") or PROMPT)
        return cls(model, tokenizer, path.name, weights_fingerprint(path), prompt=form, device=device, **settings)

    def relations(self) -> tuple[str, ...]:
        """Relations that are whole pieces of the tokenizer; all 11 if none is (a model trained in another form)."""
        return self._covered

    def fingerprint(self) -> str:
        """Of the weights, the prompt and the search."""
        return fingerprint_of(
            kind="generated",
            weights=self._weights,
            prompt=self.prompt,
            beams=self.beams,
            max_new_tokens=self.max_new_tokens,
            max_pieces=self.max_pieces,
        )

    def prompt_of(self, head: str, relation: str) -> str:
        """What the model reads; white space is single.

        >>> GeneratedInferences.prompt_of(provider, "i lost my job", "xReact")  # doctest: +SKIP
        'i lost my job xReact [GEN]'
        """
        return " ".join(self.prompt.format(head=head, relation=relation).split())

    def infer(
        self,
        heads: Sequence[str],
        relations: Sequence[str] = RELATIONS,
        n: int = 5,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> list[Answer]:
        """See :class:`Inferences`; a score is the mean log probability of a piece (nats), so at most 0.

        ``batch_size`` counts prompts: 11 a head. The model runs in single precision, whose last bits depend on the
        batch: a score can differ by one in its last printed digit, and tails that score the same can swap.
        ``batch_size=1`` asks every prompt alone and so excludes that. With one beam there are no scores.
        """
        names = asked_relations(relations, n)
        out: list[Answer] = []
        rest = iter(heads)
        while window := list(islice(rest, WINDOW)):
            out += self._window(window, names, n, batch_size)
            if progress is not None:
                progress(len(window))
        return out

    def _window(self, heads: Sequence[str], names: Sequence[str], n: int, batch_size: int) -> list[Answer]:
        asked = [(head, name) for head in dict.fromkeys(heads) for name in names if head.strip()]
        asked = [(head, name) for head, name in asked if name in self._covered]
        rows = [self._pieces(head, name) for head, name in asked]
        written: dict[tuple[str, str], Tails] = {}
        sampler = BucketBatchSampler([len(row) for row in rows], batch_size, shuffle=False)
        for batch in sampler.batches():
            for i, (texts, scores) in zip(batch, self._write([rows[i] for i in batch], n), strict=True):
                head, name = asked[i]
                written[head, name] = _tails(name, texts, scores, n)
        return [
            {name: written.get((head, name)) or Tails(name, absent=self._reason(head)) for name in names}
            for head in heads
        ]

    def _reason(self, head: str) -> str:
        return NOT_COVERED if head.strip() else EMPTY

    def _pieces(self, head: str, relation: str) -> list[int]:
        """A prompt's pieces; words are left out at the head's front until it fits, so that the relation stays."""
        words = head.split()
        while True:
            ids: list[int] = self.tokenizer(self.prompt_of(" ".join(words), relation), verbose=False)["input_ids"]
            if len(ids) <= self.max_pieces or not words:
                return ids[-self.max_pieces :]
            words = words[max(1, (len(ids) - self.max_pieces) // 4) :]

    def _write(self, rows: Sequence[list[int]], n: int) -> Iterator[tuple[list[str], list[float]]]:
        """Texts and scores of one batch, best first; one beam gives no scores."""
        padded = self.tokenizer.pad({"input_ids": list(rows)}, return_tensors="pt")
        settings = copy.deepcopy(self.model.generation_config)
        beams = max(self.beams, n)
        settings.update(
            max_length=None,
            max_new_tokens=self.max_new_tokens,
            min_length=0,
            min_new_tokens=None,
            length_penalty=1.0,
            no_repeat_ngram_size=0,
            repetition_penalty=1.0,
            early_stopping=False,
            num_beams=beams,
            num_return_sequences=beams,
            do_sample=False,
            output_scores=True,
            return_dict_in_generate=True,
        )
        with torch.inference_mode():
            made: Any = self.model.generate(
                input_ids=padded["input_ids"].to(self.model.device),
                attention_mask=padded["attention_mask"].to(self.model.device),
                generation_config=settings,
            )
        texts = self.tokenizer.batch_decode(made.sequences, skip_special_tokens=True)
        ranks = made.sequences_scores.tolist() if beams > 1 else []
        for i in range(len(rows)):
            yield texts[i * beams : (i + 1) * beams], ranks[i * beams : (i + 1) * beams]


def _tails(relation: str, texts: Sequence[str], scores: Sequence[float], n: int) -> Tails:
    """The best ``n`` of the texts that say something, with their scores where there are any."""
    kept = clean_tails(texts)[:n]
    if not kept:
        return Tails(relation, absent=ONLY_NONE)
    ranks = tuple(round(scores[place], 3) for _, place in kept) if scores else ()
    return Tails(relation, tuple(text for text, _ in kept), ranks)
