"""A word-level tokenizer and tiny encoders with random weights: what the cause models are tested on."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, DistilBertConfig, PreTrainedTokenizerFast, RobertaConfig

from empatheia.records.dialogue import Span
from empatheia_research.understanding.causes.entailment import CauseEntailment
from empatheia_research.understanding.causes.entailment_config import CauseEntailmentConfig
from empatheia_research.understanding.causes.entailment_items import EntailmentItem
from empatheia_research.understanding.causes.span_config import CauseSpansConfig
from empatheia_research.understanding.causes.spans import CauseSpans

VOCABULARY = """
[PAD] [UNK] [CLS] [SEP] anger happiness sadness neutral a b c d e f g h
The target utterance is evidence What causal span from context that relevant to the ' s emotion ? . ,
"""
WORDS = tuple(VOCABULARY.split())
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{key}_token": value for key, value in special.items()},
    )


def encoder_config(kind=BertConfig) -> dict:
    sizes = {"vocab_size": len(WORDS), "pad_token_id": 0}
    if kind is DistilBertConfig:
        return DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=64, **sizes).to_dict()
    return kind(max_position_embeddings=600, **SIZES, **sizes).to_dict()


def spans_model(kind=BertConfig, seed: int = 0, **fields) -> CauseSpans:
    torch.manual_seed(seed)
    model = CauseSpans(CauseSpansConfig(encoder_config=encoder_config(kind), head_width=16, **fields)).eval()
    return spread(model)


def entailment_model(seed: int = 0, **fields) -> CauseEntailment:
    torch.manual_seed(seed)
    model = CauseEntailment(CauseEntailmentConfig(encoder_config=encoder_config(), head_width=16, **fields)).eval()
    return spread(model)


def spread(model):
    """Larger head weights, so that answers of random weights differ from input to input."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "head" in name and parameter.dim() > 1 and len(parameter) <= 2:
                parameter.mul_(3)
    return model


def item(*texts: str, labels=None, spans=None, emotion: str = "anger", id: str = "x", **fields) -> EntailmentItem:
    speakers = tuple("AB"[i % 2] for i in range(len(texts)))
    return EntailmentItem(id, len(texts) - 1, texts, speakers, emotion, labels, spans, **fields)


def labelled() -> list[EntailmentItem]:
    return [
        item("a b c", "d", "e f g h", labels=(1, 0, 1), spans=(Span(0, 2, 5), Span(2, 0, 3), Span(2, 4, 7)), id="x"),
        item("b", labels=(1,), spans=(Span(0, 0, 1),), emotion="sadness", id="y"),
        item("c d", "a", labels=(0, -100), spans=(), id="z"),
        item("e", "f f", "a b", "c c c c", labels=(0, 0, 1, 0), spans=(Span(2, 0, 1),), id="w"),
    ]


def encoder_folder(folder: Path) -> Path:
    torch.manual_seed(3)
    BertModel(BertConfig(**{**SIZES, "vocab_size": len(WORDS), "max_position_embeddings": 600})).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


ENCODERS = (BertConfig, RobertaConfig, DistilBertConfig)
