"""Conversations, a tiny emotion estimator and a tiny masked language model with random weights."""

from __future__ import annotations

from functools import cache

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from empatheia.records.dialogue import Dialogue
from empatheia.taxonomy import EMOTIONS
from empatheia_research.decoding.turn_pool import WordList
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.understanding.words.estimator import EmotionEstimator, EmotionEstimatorConfig
from empatheia_research.understanding.words.estimator_pieces import EstimatorReader
from empatheia_research.understanding.words.turns import EstimatorWords, WordsOfTurns

TURNS = (
    "My dog ate the cake for my sister's party.",
    "I lost  my keys and my phone today!",
    "My brother found a new job in the city.",
    "The teacher gave us the exam back.",
    "Our garden is full of flowers, and the CAT sleeps there.",
    "We went to the beach with friends.",
    "She called me about the wedding.",
    "He broke the window of my car.",
    "My boss bought a house near the lake.",
    "The train was late, so the trip was long.",
)
_WORDS = """dog cake sister party keys phone brother job city teacher exam garden flowers cat beach friends wedding
    window car boss house lake train trip dogs losing"""
WORDS = WordList.of(_WORDS.split())
DIALOGUES = [Dialogue.of(text, id=str(i)) for i, text in enumerate(TURNS)]


@cache
def _pieces() -> str:
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], min_frequency=1,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
    )  # fmt: skip
    core.train_from_iterator([*TURNS, *(f"a {word}" for word in WORDS.words)] * 3, trainer)
    core.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return core.to_str()


def byte_tokenizer() -> PreTrainedTokenizerFast:
    names = {"bos_token": "<s>", "cls_token": "<s>", "sep_token": "</s>", "eos_token": "</s>"}
    names |= {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(_pieces()), **names)


@cache
def own_tokenizer() -> DialogueTokenizer:
    return DialogueTokenizer.train_bpe([*TURNS * 2, *EMOTIONS, *WORDS.words * 3], size=900)


def estimator(kind: str = "own", **fields) -> EstimatorWords:
    """``own`` (our pieces, encoder-decoder), ``bart`` (byte-level pieces) or ``gpt2`` (a decoder alone)."""
    torch.manual_seed(0)
    tokenizer = own_tokenizer() if kind == "own" else byte_tokenizer()
    own = kind == "own"
    ids = {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_id if own else 1,
        "bos_token_id": tokenizer.bos_id if own else 0,
        "eos_token_id": tokenizer.eos_id if own else 2,
    }
    if kind == "gpt2":
        backbone = {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 200, **ids}
    else:
        sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2}
        sizes |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
        backbone = {"model_type": "bart", "max_position_embeddings": 200, **sizes, **ids}
        backbone["decoder_start_token_id"] = ids["bos_token_id"] if own else 2
    config = EmotionEstimatorConfig(backbone, EMOTIONS, max_pieces=64, **fields)
    model = EmotionEstimator(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and "position" not in name:
                parameter.mul_(5)
    return EstimatorWords(model, EstimatorReader(tokenizer, config, model.start), memory={})


def words_component(kind: str = "own") -> WordsOfTurns:
    return WordsOfTurns(estimator(kind))


def masked_model():
    """(model, tokenizer)"""
    torch.manual_seed(0)
    tokenizer = byte_tokenizer()
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, pad_token_id=1, **sizes)
    model = BertForMaskedLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(5)
    return model, tokenizer
