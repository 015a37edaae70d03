"""Randomly initialised models of transformers, made on the spot, and contexts for them."""

from __future__ import annotations

import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BlenderbotSmallConfig,
    BlenderbotSmallForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from empatheia_research.decoding.worlds import Worlds

VOCABULARY = 40
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def make_model(name):
    """bart, t5, blenderbot-small, gpt2 or llama, with scores far enough apart that no two beams tie."""
    torch.manual_seed(3)
    seq2seq = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "decoder_start_token_id": 2}
    seq2seq |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
    seq2seq |= {"encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "vocab_size": VOCABULARY, **SPECIAL}
    if name == "bart":
        model = BartForConditionalGeneration(BartConfig(**seq2seq, forced_eos_token_id=None))
    elif name == "blenderbot-small":
        config = BlenderbotSmallConfig(**seq2seq, forced_eos_token_id=None)
        model = BlenderbotSmallForConditionalGeneration(config)
    elif name == "t5":
        sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "vocab_size": VOCABULARY}
        model = T5ForConditionalGeneration(T5Config(**sizes, **SPECIAL, decoder_start_token_id=0))
    elif name == "gpt2":
        model = GPT2LMHeadModel(
            GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_positions=64, **SPECIAL)
        )
    else:
        sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
        model = LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, **sizes, **SPECIAL))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.7)
    return model.eval()


def make_worlds(model, n_examples, n_worlds=3, seed=0):
    """Contexts of different lengths; the worlds of an example differ in a piece or two and in length."""
    g = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(n_examples):
        length = int(torch.randint(4, 9, (1,), generator=g))
        true = torch.randint(4, VOCABULARY, (length,), generator=g).tolist()
        rows.append(true)
        for _ in range(n_worlds - 1):
            other = list(true)
            place = int(torch.randint(length, (1,), generator=g))
            n_new = int(torch.randint(1, 4, (1,), generator=g))
            other[place : place + 1] = torch.randint(4, VOCABULARY, (n_new,), generator=g).tolist()
            rows.append(other)
    return Worlds(pad(rows, left=not model.config.is_encoder_decoder), n_worlds)


def pad(rows, left, extra=0):
    width = max(map(len, rows)) + extra
    ids, mask = torch.zeros(len(rows), width, dtype=torch.long), torch.zeros(len(rows), width, dtype=torch.long)
    for i, row in enumerate(rows):
        place = slice(width - len(row), None) if left else slice(len(row))
        ids[i, place], mask[i, place] = torch.tensor(row), 1
    return {"input_ids": ids, "attention_mask": mask}
