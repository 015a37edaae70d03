"""A responder of a few thousand random weights in a whole model folder."""

from __future__ import annotations

import json
from pathlib import Path

SENTENCES = (
    "I lost my grandmother last week and I keep her scarf on my desk.",
    "Oh no, I am so sorry to hear that. Were you close?",
    "Yes, we were. I am very proud of my daughter, she passed the exam today!",
    "That's great news, you must be happy.",
    "I was so angry when the dog ate my dinner, but it was funny too.",
    "What happened then? Did you cook again?",
    "We moved to a new town and I don't know anybody here yet.",
    "I hope you will find friends soon. Do you like the town?",
)


def build_model_folder(folder: Path, seed: int = 0, **manifest: object) -> Path:
    """Writes a two-layer cause-gated model with random weights and a 400-piece vocabulary."""
    import torch
    from transformers import GenerationConfig

    from empatheia.taxonomy import EMOTIONS
    from empatheia_research.responders import RESPONDERS
    from empatheia_research.text.tokenizer import DialogueTokenizer

    tokenizer = DialogueTokenizer.train_bpe(SENTENCES, size=400)
    torch.manual_seed(seed)
    network_class = RESPONDERS.get("cause_gated")
    config = network_class.config_class(
        vocab_size=len(tokenizer),
        width=32,
        n_encoder_layers=1,
        n_decoder_layers=1,
        n_heads=2,
        ffn_width=64,
        reasoner_positions=True,
        pad_token_id=tokenizer.pad_id,
        bos_token_id=tokenizer.bos_id,
        eos_token_id=tokenizer.eos_id,
    )
    network = network_class(config)
    with torch.no_grad():  # spread the untrained heads, so that answers differ from input to input
        network.encoder.reasoner.emotion.weight.mul_(2)
    network.generation_config = GenerationConfig(
        pad_token_id=tokenizer.pad_id,
        bos_token_id=tokenizer.bos_id,
        eos_token_id=tokenizer.eos_id,
        decoder_start_token_id=tokenizer.bos_id,
    )
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    record = {
        "format": 1,
        "system": "cause_gated",
        "name": "tiny",
        "layout": {"max_source": 128},
        "emotions": list(EMOTIONS),
        "cause_threshold": 0.5,
        "temperature": 1.0,
        "licence": "none: random weights",
        **manifest,
    }
    (folder / "empatheia.json").write_text(json.dumps(record), encoding="utf-8")
    return folder
