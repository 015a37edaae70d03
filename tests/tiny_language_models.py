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
    from empatheia_research.text.prompt_pieces import train_prompt_pieces

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


def make_gguf(folder: Path, file: Path) -> Path:
    """A llama folder of :func:`make_folder` as one GGUF file, unquantised, written as llama.cpp's converter does."""
    import json

    import gguf
    from transformers import AutoModelForCausalLM, AutoTokenizer

    network, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    config = network.config
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    special = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(pieces)
    writer.add_token_types([3 if i in special else 1 for i in range(len(pieces))])
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)
    writer.add_pad_token_id(config.pad_token_id)
    if tokenizer.chat_template:
        writer.add_chat_template(tokenizer.chat_template)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in network.state_dict().items():
        values = tensor.float().numpy()
        for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if part in name:  # llama.cpp's rotary halves lie interleaved
                rows, width = values.shape
                values = values.reshape(heads, 2, rows // heads // 2, width).swapaxes(1, 2).reshape(rows, width)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
