"""Tiny emotion estimators with random weights, one for each kind of backbone."""

from __future__ import annotations

from functools import cache

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from empatheia.taxonomy import EMOTIONS
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.understanding.words.estimator import EmotionEstimator, EmotionEstimatorConfig
from empatheia_research.understanding.words.estimator_pieces import EstimatorReader

TEXTS = (
    "My dog ate the whole cake.",
    "I was so happy when she called me!",
    "The bus never came and I walked home in the rain, which took two hours and ruined my new shoes.",
    "Congratulations",
    "",
    "I don't know anybody here :(",
    "I am afraid of the dark stairs in our old house.",
)
KINDS = ("bart", "t5", "gpt2", "bert", "own bart", "own gpt2")
SIZES = {
    "bart": {
        "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 80,
    },
    "t5": {"d_model": 32, "d_kv": 16, "num_heads": 2, "num_layers": 1, "num_decoder_layers": 2, "d_ff": 48},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 80},
    "bert": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48},
}  # fmt: skip


@cache
def _pieces_file() -> str:
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(
        vocab_size=340, special_tokens=specials, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    core.train_from_iterator(TEXTS, trainer)
    return core.to_str()


@cache
def _own_pieces_file() -> str:
    return DialogueTokenizer.train_bpe([*TEXTS, *EMOTIONS], size=400)._tokenizer.to_str()


def hf_tokenizer(kind: str) -> PreTrainedTokenizerFast:
    """Byte-level pieces framed as BART, T5 or GPT-2 frame them."""
    core = Tokenizer.from_str(_pieces_file())
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    if kind == "bart":
        core.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
        names |= {"bos_token": "<s>", "cls_token": "<s>", "sep_token": "</s>"}
    elif kind == "t5":
        core.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    elif kind == "gpt2":
        names = {"bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>"}  # one piece for all, and no padding
    else:
        names = {"pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=core, **names)


def estimator(kind: str = "bart", labels=EMOTIONS, seed: int = 0, **fields):
    """(model, reader) of a backbone with random, spread-out weights."""
    torch.manual_seed(seed)
    family = kind.removeprefix("own ")
    if kind.startswith("own "):
        tokenizer = DialogueTokenizer.train_bpe([*TEXTS, *EMOTIONS], size=400)
        tokenizer._tokenizer = Tokenizer.from_str(_own_pieces_file())
        tokenizer._tokenizer.encode_special_tokens = True
        ids = {
            "vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_id, "bos_token_id": tokenizer.bos_id,
            "eos_token_id": tokenizer.eos_id, "decoder_start_token_id": tokenizer.bos_id,
        }  # fmt: skip
    else:
        tokenizer = hf_tokenizer(kind)
        ids = {"vocab_size": len(tokenizer), "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
        ids["decoder_start_token_id"] = 1 if kind == "t5" else 2
    if family not in ("bart", "t5"):
        del ids["decoder_start_token_id"]
    backbone = {"model_type": family, **SIZES[family], **ids}
    config = EmotionEstimatorConfig(backbone, labels, **{"max_pieces": 64, **fields})
    model = EmotionEstimator(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and "position" not in name:
                parameter.mul_(6 if family != "t5" else 1.5)
    return model, EstimatorReader(tokenizer, config, model.start)
