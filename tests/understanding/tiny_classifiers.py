"""Tiny classifiers with random weights, as folders and as objects."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from empatheia.taxonomy import EMOTIONS
from empatheia_research.understanding.labels.classifier import TextClassifier
from empatheia_research.understanding.labels.linear_classifier import LinearClassifier
from empatheia_research.understanding.labels.utterance_classifier import (
    PieceReader,
    UtteranceClassifier,
    UtteranceClassifierConfig,
    train_pieces,
)

SENTENCES = (
    "My dog ate the whole cake.",
    "I was so happy when she called me!",
    "Did you tell him?",
    "The bus never came and I walked home in the rain, which took two hours and ruined my new shoes.",
    "Congratulations",
    "",
    "I am afraid of the dark stairs in our old house.",
    "How was the cake?",
    "Did you tell him?",
)
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


@cache
def _pieces_file() -> str:
    return train_pieces(SENTENCES, 200, 64).backend_tokenizer.to_str()


def pieces_of_the_sentences() -> PreTrainedTokenizerFast:
    """The same pieces each time: learning them again may break ties otherwise."""
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]"}
    core = Tokenizer.from_str(_pieces_file())
    return PreTrainedTokenizerFast(
        tokenizer_object=core, model_max_length=64, **{f"{k}_token": v for k, v in names.items()}
    )


def encoder_classifier(labels=EMOTIONS, model_type: str = "bert", seed: int = 0, **fields) -> TextClassifier:
    torch.manual_seed(seed)
    pieces = pieces_of_the_sentences()
    sizes = SIZES | {"vocab_size": len(pieces), "max_position_embeddings": 80, "pad_token_id": 0}
    if model_type == "distilbert":
        sizes = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": len(pieces)}
    config = UtteranceClassifierConfig(
        encoder_config={"model_type": model_type, **sizes}, labels=labels, **{"max_pieces": 64, **fields}
    )
    model = UtteranceClassifier(config)
    with torch.no_grad():
        model.head[-1].weight.mul_(8)  # spread the answers of random weights
    return TextClassifier(model, PieceReader(pieces, config), "tiny")


def linear_classifier(labels=EMOTIONS, seed: int = 0, **fields) -> TextClassifier:
    torch.manual_seed(seed)
    model, reader = LinearClassifier.from_texts(SENTENCES, labels, width=8, **{"buckets": 50, "n_grams": 2, **fields})
    with torch.no_grad():
        model.head.weight.normal_(0, 8)
    return TextClassifier(model, reader, "tiny-linear")


def save(classifier: TextClassifier, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    classifier.model.save_pretrained(folder)
    classifier.reader.save(folder)
    return folder
