"""A tiny encoder-decoder and a tiny encoder with random weights, a table of tuples, and a provider that counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
from transformers import BartConfig, BartForConditionalGeneration, BertConfig, BertModel, PreTrainedTokenizerFast

from empatheia.taxonomy import RELATIONS
from empatheia_research.corpora import atomic
from empatheia_research.understanding.fingerprints import fingerprint_of
from empatheia_research.understanding.inferences.provider import Tails, asked_relations

TEXT = """
i my the a lost job dog died was so sad happy angry to go home sleep new work of . , and then
told them about it all day long none personx
"""
WORDS = TEXT.split()


def pieces(words: Sequence[str] = WORDS, relations: Sequence[str] = RELATIONS) -> PreTrainedTokenizerFast:
    """Whole words; relations as ordinary added tokens, as COMET's tokenizer has them; no [GEN]."""
    names = ["<pad>", "<s>", "</s>", "<unk>"]
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*names, *words])}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    core.add_tokens([AddedToken(name, normalized=False) for name in relations])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        cls_token="<s>",
        sep_token="</s>",
        model_max_length=64,
    )


def save_seq2seq(folder: Path, relations: Sequence[str] = RELATIONS, seed: int = 0) -> Path:
    """A two-layer BART whose own settings forbid short tails, as bart-large's do."""
    torch.manual_seed(seed)
    tokenizer = pieces(relations=relations)
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=2,
        init_std=0.6,
    )
    model = BartForConditionalGeneration(config)
    model.generation_config.min_length = 12
    model.generation_config.max_length = 40
    model.generation_config.num_beams = 3
    model.generation_config.do_sample = True
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_encoder(folder: Path, seed: int = 0) -> Path:
    """A two-layer BERT on the same words."""
    torch.manual_seed(seed)
    tokenizer = pieces()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, initializer_range=0.5, **sizes)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def table(*rows: str, folder: Path) -> atomic.AtomicTuples:
    """Tuples from lines ``head|relation|tail``."""
    path = folder / "table.tsv"
    path.write_text("".join(row.replace("|", "\t") + "\n" for row in rows), encoding="utf-8")
    return atomic.read(path)


class Axes:
    """Vectors by hand: a text's vector is what the mapping says, scaled to length 1."""

    name = "axes"

    def __init__(self, width: int, of: Callable[[str], Sequence[float]]) -> None:
        self.width = width
        self.of = of

    def fingerprint(self) -> str:
        return fingerprint_of(kind="axes", width=self.width)

    def encode(self, texts, *, batch_size=32, progress=None):
        out = np.array([self.of(text) for text in texts], np.float32).reshape(len(texts), self.width)
        if progress is not None:
            progress(len(texts))
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)

    def save(self, folder: Path) -> None:
        pass


class Echo:
    """Says the head back; counts what it is asked; ``stop_after`` heads it raises, or does what it is given."""

    source = "made up"
    name = "echo"

    def __init__(self, stop_after: int | None = None, stop: Callable[[], None] | None = None, stride: int = 3) -> None:
        self.stop_after = stop_after
        self.stop = stop
        self.stride = stride
        self.asked: list[str] = []

    def relations(self) -> tuple[str, ...]:
        return tuple(name for name in RELATIONS if name != "Causes")

    def fingerprint(self) -> str:
        return fingerprint_of(kind="echo")

    def infer(self, heads, relations=RELATIONS, n=5, *, batch_size=32, progress=None):
        out = []
        for head in heads:
            if self.stop_after is not None and len(self.asked) >= self.stop_after:
                if self.stop is not None:
                    self.stop()
                raise KeyboardInterrupt
            self.asked.append(head)
            answer = {}
            for name in asked_relations(relations, n):
                texts = tuple(f"{head} {name} {i}" for i in range(n))
                answer[name] = Tails(name, texts) if name != "Causes" else Tails(name, absent="relation not covered")
            out.append(answer)
        return out
