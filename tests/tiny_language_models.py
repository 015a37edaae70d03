"""Language models of a few thousand random weights in whole folders, as the hub serves them; nothing is fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SENTENCES = (
    "I lost my grandmother last week. The speaker feels sad. Oh no, I am so sorry to hear that!",
    "Speaker: We moved to a new town. Listener: Do you like it there? You are the listener in a conversation.",
    "I am very proud of my daughter, she passed the exam today. That's great news, you must be happy.",
    "The dog ate my dinner, but it was funny too. What happened then?",
)
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
STRICT_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('must alternate') }}{% endif %}"
    "[{{ m['role'] }}] {{ m['content'] }}<end>{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {
        "model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 1024,
    },
    "gpt2": {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 1024},
    "t5": {"model_type": "t5", "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2},
}  # fmt: skip
FORMS = {"llama": "causal", "gpt2": "causal", "t5": "seq2seq"}


def make_tokenizer(template: str | None = None) -> Any:
    """Byte-level pieces of the test sentences, with a chat template's marks if it is given."""
    from empatheia.text.prompt_pieces import train_prompt_pieces

    tokenizer = train_prompt_pieces(SENTENCES, 400)
    if template is not None:
        tokenizer.add_special_tokens(
            {"additional_special_tokens": ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]}
        )
        tokenizer.chat_template = template
    return tokenizer


def base_config(kind: str, tokenizer: Any) -> dict[str, Any]:
    """A configuration with the tokenizer's size and marks."""
    marks = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    marks |= (
        {"decoder_start_token_id": tokenizer.pad_token_id} if kind == "t5" else {"bos_token_id": tokenizer.eos_token_id}
    )
    return {**CONFIGS[kind], "vocab_size": len(tokenizer), **marks}


def make_folder(folder: Path, kind: str = "llama", template: str | None = TEMPLATE, seed: int = 0) -> Path:
    """A model folder of transformers, with random weights spread enough for answers to differ."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    tokenizer = make_tokenizer(template)
    settings = base_config(kind, tokenizer)
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    torch.manual_seed(seed)
    network = (AutoModelForSeq2SeqLM if kind == "t5" else AutoModelForCausalLM).from_config(config)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(4 if parameter.dim() > 1 else 1)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
