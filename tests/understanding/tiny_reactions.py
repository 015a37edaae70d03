"""Tiny mechanism and reaction models with random weights, and a tiny encoder as a folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from empatheia.taxonomy import LABELS_41
from empatheia_research.understanding.labels.next_label import ContextReader, ReactionPredictor, ReactionPredictorConfig
from empatheia_research.understanding.labels.utterance_classifier import train_pieces
from empatheia_research.understanding.mechanisms.identifier import MechanismIdentifier, MechanismIdentifierConfig
from empatheia_research.understanding.mechanisms.pairs import Pair, PairReader

SENTENCES = (
    "I lost my job and I don't know what to do now.",
    "That's pretty vague. Why?",
    "I'm so sorry to hear that. I was out of work for a year, and it felt endless. What happened?",
    "ok",
    "My dog is ill",
    "Like school? (or work)",
    "Did they tell you why?",
    "",
    "Ask for a meeting.",
)
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


@cache
def _pieces_file() -> str:
    return train_pieces(SENTENCES, 220, 64).backend_tokenizer.to_str()


def pieces() -> PreTrainedTokenizerFast:
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]"}
    core = Tokenizer.from_str(_pieces_file())
    return PreTrainedTokenizerFast(
        tokenizer_object=core, model_max_length=64, **{f"{k}_token": v for k, v in names.items()}
    )


def bert_sizes() -> dict:
    return {"model_type": "bert", **SIZES, "vocab_size": len(pieces()), "max_position_embeddings": 130}


def encoder_folder(folder: Path) -> Path:
    torch.manual_seed(0)
    sizes = {key: value for key, value in bert_sizes().items() if key != "model_type"}
    BertModel(BertConfig(**sizes)).save_pretrained(folder)
    pieces().save_pretrained(folder)
    return folder


def identifier(seed: int = 0, model_type: str = "bert", **fields) -> tuple[MechanismIdentifier, PairReader]:
    torch.manual_seed(seed)
    config = MechanismIdentifierConfig(
        encoder_config={**bert_sizes(), "model_type": model_type}, **{"max_pieces": 32, **fields}
    )
    model = MechanismIdentifier(config).eval()
    with torch.no_grad():  # spread the answers of random weights
        for encoder in dict.fromkeys(
            [model.response_encoder, getattr(model, "seeker_encoder", model.response_encoder)]
        ):
            encoder.get_input_embeddings().weight.normal_(0, 1)
        for head in model.heads:
            head.attention.in_proj_weight.normal_(0, 0.2)
            head.attention.out_proj.weight.normal_(0, 0.2)
            head.level[1].weight.normal_(0, 0.2)
            head.level[-1].weight.normal_(0, 0.4)
            head.rationale.weight.normal_(0, 1)
    return model, PairReader(pieces(), config)


def predictor(seed: int = 0, model_type: str = "bert", **fields) -> tuple[ReactionPredictor, ContextReader]:
    torch.manual_seed(seed)
    sizes: dict = {**bert_sizes(), "model_type": model_type, "pad_token_id": 0}
    if model_type == "distilbert":
        sizes = {"model_type": "distilbert", "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
        sizes["vocab_size"] = len(pieces())
    config = ReactionPredictorConfig(encoder_config=sizes, **{"max_pieces": 64, **fields})
    model = ReactionPredictor(config).eval()
    with torch.no_grad():
        model.get_input_embeddings().weight.normal_(0, 1)
        model.head[-1].weight.normal_(0, 1)
        if config.turn_labels:
            model.label_table.weight.normal_(0, 1)
    return model, ContextReader(pieces(), config)


def pairs() -> list[Pair]:
    """Seekers and responses of different lengths, without labels."""
    return [Pair(str(i), SENTENCES[i - 1], text) for i, text in enumerate(SENTENCES)]


class Labeller:
    """A component of part ``intent`` that labels a turn by the length of its text."""

    part = "intent"
    name = "by length"

    def annotate(self, dialogues, *, batch_size=32, progress=None):
        from empatheia.records.analysis import TurnLabels

        def label(text: str) -> dict[str, float]:
            chosen = LABELS_41[len(text) % 41]
            return {name: float(name == chosen) for name in LABELS_41}

        return [tuple(TurnLabels(i, label(turn.text)) for i, turn in enumerate(d.turns)) for d in dialogues]
