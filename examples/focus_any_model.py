"""Any model of transformers, its own reply beside one that is focused on what the speaker is about.

    python examples/focus_any_model.py --tiny bart --focus "driving test"
    python examples/focus_any_model.py --model FOLDER --text "My dog died." --focus dog --distractors "My car died."

A focused reply is one from which a listener can tell the true text from others in which the words of --focus are
exchanged (Kim et al. 2021). --tiny makes a model with random weights on the spot: it babbles, and shows the mechanics.
"""

import argparse

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from empatheia.analysis.targets import named
from empatheia.errors import EmpatheiaError
from empatheia.resources import resolve_model
from empatheia_research.decoding.distractors import exchanged
from empatheia_research.decoding.focus import focused_generate
from empatheia_research.decoding.given_replies import focused_score
from empatheia_research.decoding.worlds import stack_worlds
from empatheia_research.pretrained import load_pretrained
from empatheia_research.text.prompt_pieces import train_prompt_pieces

SENTENCE = "I finally passed my driving test after failing it three times!"
OTHERS = ("garden", "concert", "breakfast", "sister", "holiday", "computer", "kitchen", "river")
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
SEQ2SEQ = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
SEQ2SEQ |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "forced_eos_token_id": None}
TINY = {
    "bart": SEQ2SEQ,
    "blenderbot-small": SEQ2SEQ,
    "t5": {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2},
    "llama": SIZES,
}


def make_tiny(kind, texts):
    """A model with random weights and a tokenizer of the texts' pieces."""
    tokenizer = train_prompt_pieces(texts, 400)
    marks = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    marks |= {"bos_token_id": tokenizer.eos_token_id, "decoder_start_token_id": tokenizer.pad_token_id}
    config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **TINY[kind], **marks)
    torch.manual_seed(0)
    model = (AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM).from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.3)  # far enough apart for contexts to matter
    return model, tokenizer


def load(name):
    """A model's folder, or its name on the hub."""
    folder = resolve_model(name)
    is_encoder_decoder = load_pretrained(AutoConfig, folder).is_encoder_decoder
    kind = AutoModelForSeq2SeqLM if is_encoder_decoder else AutoModelForCausalLM
    return load_pretrained(kind, folder), load_pretrained(AutoTokenizer, folder)


def others(text, words):
    """Two texts in which other words stand in place of the given ones, wherever they occur."""
    targets = named(text, words.split(","))
    fresh = [other for other in OTHERS if other not in text.lower()]
    return [exchanged(targets, [fresh[(i + k) % len(fresh)] for k in range(len(targets.spans))]) for i in (0, 4)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--model", help="folder or name of any encoder-decoder or causal model")
    which.add_argument("--tiny", choices=TINY)
    parser.add_argument("--text", default=SENTENCE)
    parser.add_argument("--focus", default="driving test", help="words of the text, with commas")
    parser.add_argument("--distractors", nargs="+", help="other texts; default: --focus exchanged by words of a list")
    parser.add_argument("--alpha", type=float, default=6.0)
    parser.add_argument("--beta", type=float, default=0.9)
    parser.add_argument("--pieces", type=int, default=12, help="most pieces of a reply")
    options = parser.parse_args()
    try:
        run(options)
    except (EmpatheiaError, OSError) as problem:
        parser.error(str(problem))


def run(options):
    texts = [options.text, *(options.distractors or others(options.text, options.focus))]
    if len(set(texts)) < len(texts):
        raise EmpatheiaError("two of the texts are the same; a listener cannot tell them apart.")
    model, tokenizer = make_tiny(options.tiny, texts) if options.tiny else load(options.model)
    model.eval()
    is_decoder = not model.config.is_encoder_decoder
    tokenizer.padding_side = "left" if is_decoder else "right"  # a decoder goes on where its context ends
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    worlds = stack_worlds([[f"{text}\n" if is_decoder else text for text in texts]], tokenizer)
    print(*(f"{'true ' if i == 0 else f'not {i}'}: {text}" for i, text in enumerate(texts)), sep="\n")

    first = worlds.true()["input_ids"].shape[1] if is_decoder else 1  # where the reply begins
    for name, alpha in (("S0, as it is", 0.0), ("S1, focused", options.alpha)):
        how = {"max_new_tokens": options.pieces, "do_sample": False, "pad_token_id": tokenizer.pad_token_id}
        reply = focused_generate(model, worlds, alpha, options.beta, **how)[:, first:]
        scores = focused_score(model, worlds, reply, options.alpha, options.beta)
        print(f"\n{name}: {tokenizer.decode(reply[0], skip_special_tokens=True)!r}")
        for kind, log in (("s0", scores.log_s0), ("s1", scores.log_s1)):
            print(f"{kind.upper()} gives it {log.sum():.2f} nats, perplexity {scores.perplexity(kind):.2f}")
        print("What a listener believes after each piece:")
        print(f"{'piece':>16} {'log S0':>8} {'log S1':>8}   {'true':>6}", *(f"not {i}" for i in range(1, len(texts))))
        for t, piece in enumerate(reply[0].tolist()):
            belief = " ".join(f"{p:5.2f}" for p in scores.log_belief[0, t + 1].exp().tolist())
            said = repr(tokenizer.decode([piece]))
            print(f"{said:>16} {scores.log_s0[0, t]:8.2f} {scores.log_s1[0, t]:8.2f}    {belief}")


if __name__ == "__main__":
    main()
