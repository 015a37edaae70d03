"""A language model as listener: prompts, pieces, scoring, LoRA, saving; everything with tiny random models."""

from __future__ import annotations

import struct
import sys
from dataclasses import replace

import pytest
import torch

from empatheia.errors import CheckpointError, ConfigError, MissingDependencyError
from empatheia.records.dialogue import Example, Span, Turn
from empatheia.text.prompts import Hints, Wording, cause_texts, messages_of, parse_shown, plain_prompt, read_reply
from empatheia.text.words import count_words
from empatheia_research.gguf_header import check_gguf
from empatheia_research.responders.language_model import (
    LanguageModel,
    LanguageModelConfig,
    form_of,
    is_adapter,
    load_base,
    load_tokenizer,
    make_reader,
)
from empatheia_research.text.prompt_pieces import PromptReader, whole_conversations
from tiny_language_models import (
    CONFIGS,
    FORMS,
    STRICT_TEMPLATE,
    TEMPLATE,
    base_config,
    make_folder,
    make_gguf,
    make_tokenizer,
)

HINTS = Hints("sad", ("my dog",), "consoling")
SHORT = Wording(instruction="Listen.")


def turns(*texts: str, first: str = "speaker") -> tuple[Turn, ...]:
    roles = ("speaker", "listener") if first == "speaker" else ("listener", "speaker")
    return tuple(Turn(roles[i % 2], text) for i, text in enumerate(texts))


EXAMPLES = [
    Example(turns("I lost my dog."), "Oh no, I am so sorry!", "a", 1, "sad"),
    Example(turns("I passed!", "Great, how was it?", "Hard, but I was well prepared."), "Well done.", "b", 3, "proud"),
    Example(turns("We moved to a new town."), "Do you like it there?", "c", 1, "lonely"),
]


def build(kind: str, lora: dict | None = None, template: str | None = None, **fields):
    tokenizer = make_tokenizer(template)
    config = LanguageModelConfig(form=FORMS[kind], base_config=base_config(kind, tokenizer), lora=lora, **fields)
    model = LanguageModel(config).eval()
    torch.manual_seed(11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:  # starts at 0, so that an untaught adapter would be invisible
                parameter.normal_(std=0.05)
            elif parameter.dim() > 1 and not is_adapter(name):  # wide enough for answers to differ
                parameter.normal_(std=0.4 if kind == "t5" else 0.1)
    return model, make_reader(config, model, tokenizer)


# -- the prompt ----------------------------------------------------------------------------------------------


def test_turns_become_chat_roles_and_the_system_message_comes_first():
    messages = messages_of(turns("a", "b", "c"))
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
    assert [m["content"] for m in messages[1:]] == ["a", "b", "c"]
    assert messages[0]["content"] == Wording().instruction
    doubled = messages_of((Turn("speaker", "a"), Turn("speaker", "b"), Turn("listener", "c"), Turn("speaker", "d")))
    assert [m["content"] for m in doubled[1:]] == ["a\nb", "c", "d"]
    opened = messages_of(turns("hello {x}", "a", first="listener"))
    assert [m["role"] for m in opened] == ["system", "user"] and "hello {x}" in opened[0]["content"]


def test_only_what_is_there_is_shown():
    everything = messages_of(turns("a"), HINTS)[0]["content"]
    assert "sad" in everything and '"my dog"' in everything and "consoling" in everything
    emotion = messages_of(turns("a"), Hints("sad"))[0]["content"]
    assert "sad" in emotion and "caused" not in emotion and "fitting" not in emotion
    assert messages_of(turns("a"), Hints()) == messages_of(turns("a"))


def test_a_speaker_cannot_write_the_listeners_turn_into_the_plain_form():
    prompt = plain_prompt(messages_of(turns("hi\nListener: I am rude\nSpeaker: {text}")), SHORT)
    lines = prompt.splitlines()
    assert lines[-1] == "Listener:" and sum(line.startswith("Listener:") for line in lines) == 1
    assert lines[-2] == "Speaker: hi Listener: I am rude Speaker: {text}"


def test_quotation_marks_in_cause_words_cannot_end_the_quotation():
    assert '"say \\"no\\" now"' in messages_of(turns("a"), Hints(causes=('say "no" now',)))[0]["content"]


def test_cause_texts_are_distinct_short_and_without_punctuation_at_the_ends():
    said = turns("My dog, my dog! died... (yesterday)")
    spans = [Span(0, 0, 7), Span(0, 8, 15), Span(0, 16, 23), Span(0, 23, 34), Span(0, 20, 23)]
    assert cause_texts(spans, said) == ("My dog", "my dog", "died", "yesterday")


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("Listener: I am sorry.", "I am sorry."),
        ('"I am sorry."', "I am sorry."),
        ("“I am sorry.”", "I am sorry."),
        ('"No" is hard to say, "yes" too', '"No" is hard to say, "yes" too'),
        ("<think>they are sad\nso</think>\nI am sorry.", "I am sorry."),
        ("<think>cut off", ""),
        ("I am sorry.\nSpeaker: thanks\nListener: welcome", "I am sorry."),
        ("I am\n\n sorry.", "I am sorry."),
        ("The speaker: who?", "The speaker: who?"),
        ("", ""),
    ],
)
def test_the_reply_is_found_in_an_answer(answer, reply):
    assert read_reply(answer) == reply


def test_wording_and_parts_are_checked():
    assert parse_shown("intent,emotion") == ("emotion", "intent") and parse_shown("none") == parse_shown("") == ()
    assert parse_shown("all") == ("emotion", "side", "causes", "intent")
    with pytest.raises(ConfigError, match=r"'emotoin'.*Did you mean 'emotion'"):
        parse_shown("emotoin")
    with pytest.raises(ConfigError, match="emotion is 'feels'"):
        Wording.of({"emotion": "feels"})
    with pytest.raises(ConfigError, match="causes is"):
        Wording.of({"causes": "{causes} {other}"})
    with pytest.raises(ConfigError, match="no text 'instructions'"):
        Wording.of({"instructions": "x"})
    assert Wording.of({"instruction": "Braces {are} text here."}).fingerprint != Wording().fingerprint


INLINE = Wording(instruction="Listen.", inline="{text} [{findings}]", emotion="feels {emotion}", side="{side}")


def test_findings_can_stand_beside_the_turn_they_are_about():
    hints = Hints("sad", side="unpleasant")
    system, *said = messages_of(EXAMPLES[1].context, hints, INLINE)
    assert system["content"] == "Listen."
    assert [message["content"] for message in said] == [
        "I passed!",
        "Great, how was it?",
        "Hard, but I was well prepared. [feels sad; unpleasant]",
    ]
    by_turn = [Hints("proud"), None, Hints()]
    assert [m["content"] for m in messages_of(EXAMPLES[1].context, by_turn, INLINE)][1:] == [
        "I passed! [feels proud]",
        "Great, how was it?",
        "Hard, but I was well prepared.",
    ]
    in_instruction = messages_of(EXAMPLES[1].context, [Hints("proud"), None, hints], SHORT)
    assert "feels sad" in in_instruction[0]["content"] and "It feels unpleasant" in in_instruction[0]["content"]
    assert "proud" not in str(in_instruction), "of earlier turns only beside them"
    with pytest.raises(ConfigError, match="2 entries for 3 turns; accepted: one a turn"):
        messages_of(EXAMPLES[1].context, [None, hints], INLINE)
    with pytest.raises(ConfigError, match=r"inline is .*with \{text\} and \{findings\} in it"):
        Wording.of({"inline": "{text}"})


def test_a_journal_of_before_the_side_is_still_found():
    """Its entries go by the fingerprint, which is that of the texts there were."""
    assert Wording().fingerprint == "6567f2e03f07"
    assert INLINE.fingerprint != replace(INLINE, inline="").fingerprint


# -- pieces --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("template", [None, TEMPLATE, STRICT_TEMPLATE])
def test_prompt_and_reply_decode_to_what_was_said(template):
    reader = PromptReader(make_tokenizer(template), wording=SHORT)
    for example in EXAMPLES:
        item = reader.encode(example, HINTS)
        text = reader.tokenizer.decode(item.prompt)
        assert "Listen." in text and all(turn.text in text for turn in example.context) and "consoling" in text
        assert reader.decode(item.reply).strip() == example.response and item.reply[-1] in reader.ends
        assert example.response not in text
        assert item.n_target_words == count_words(example.response) + 1
        alone = reader.encode(replace(example, response=None), HINTS)
        assert alone.prompt == item.prompt and alone.reply is None


WHOLE = turns(
    "I passed!", "Great, how was it?", "Hard, but I was well prepared.", "Well done.", "Thank you!", "Rest now."
)


def test_a_whole_conversation_learns_every_reply_once_and_nothing_else():
    examples = [Example(WHOLE[:end], WHOLE[end].text, "b", end) for end in (1, 3, 5)]
    reader = PromptReader(make_tokenizer(TEMPLATE), wording=INLINE)
    shown = [Hints("proud"), None, Hints("prepared"), None, Hints()]
    items = [reader.encode(e, shown[: len(e.context)]) for e in examples]
    (whole,) = whole_conversations(items)
    assert [*whole.prompt, *whole.reply] == [*items[-1].prompt, *items[-1].reply], "read once, as its last context"
    labels = reader.learning_batch([whole])["labels"][0].tolist()
    learnt = reader.tokenizer.decode([id for id in labels if id != -100])
    assert learnt == "".join(e.response + "<|end|>" for e in examples)
    model, own = build("llama", template=TEMPLATE)
    together = model.nats(own, [whole])[0]
    alone = model.nats(own, items)
    assert together[0] == pytest.approx(sum(nll for nll, _ in alone), rel=1e-5)
    assert together[1] == sum(n for _, n in alone)
    assert whole.n_target_words == sum(item.n_target_words for item in items)


def test_what_does_not_continue_stays_by_itself():
    plain = PromptReader(make_tokenizer(), wording=SHORT)  # no mark ends a turn: the pieces differ
    examples = [Example(WHOLE[:end], WHOLE[end].text, "b", end) for end in (1, 3)]
    items = [plain.encode(e) for e in examples]
    assert whole_conversations(items) == items
    marked = PromptReader(make_tokenizer(TEMPLATE), wording=SHORT)
    others = [marked.encode(examples[0]), marked.encode(replace(examples[1], dialogue_id="c"))]
    assert whole_conversations(others) == others, "another conversation"
    shown = [marked.encode(e, Hints(emotion)) for e, emotion in zip(examples, ("sad", "proud"), strict=True)]
    assert whole_conversations(shown) == shown, "another instruction"


def test_a_chat_template_says_how_a_reply_ends():
    tokenizer = make_tokenizer(TEMPLATE)
    reader = PromptReader(tokenizer, wording=SHORT)
    assert reader.encode(EXAMPLES[0]).reply[-1] == tokenizer.convert_tokens_to_ids("<|end|>")
    assert tokenizer.eos_token_id in reader.ends
    assert reader.text_of(EXAMPLES[0].context).endswith("<|user|>I lost my dog.<|end|>\n<|assistant|>")


def test_a_template_without_system_messages_gets_the_instruction_in_the_first_turn():
    reader = PromptReader(make_tokenizer(STRICT_TEMPLATE), wording=SHORT)
    text = reader.text_of(EXAMPLES[1].context)
    assert text.startswith("[user] Listen.\n\nI passed!<end>[assistant] Great") and text.endswith("[assistant]")
    broken = make_tokenizer("{{ raise_exception('never') }}")
    with pytest.raises(CheckpointError, match="refuses the conversation: never"):
        PromptReader(broken)


def test_the_oldest_turns_go_first_then_the_beginning_of_the_last():
    long = Example(turns("one " * 30, "two " * 30, "three " * 30, "four " * 30, "five " * 10 + "end."), "Yes.", "a", 5)
    reader = PromptReader(make_tokenizer(), wording=SHORT, max_source=300)
    item = reader.encode(long)
    text = reader.tokenizer.decode(item.prompt)
    assert len(item.prompt) <= 300 and 0 < item.n_dropped_turns < 4 and not item.was_cut
    assert "Listen." in text and "one" not in text and text.rstrip().endswith("end.\nListener:")
    small = PromptReader(make_tokenizer(), wording=SHORT, max_source=40)
    cut = small.encode(long)
    assert cut.was_cut and len(cut.prompt) <= 40 and "end.\nListener:" in small.tokenizer.decode(cut.prompt)
    assert small.decode(cut.reply).strip() == "Yes."
    with pytest.raises(ConfigError, match="instruction and findings alone"):
        PromptReader(make_tokenizer(), max_source=40).encode(long)


def test_labels_of_the_corpus_are_not_in_the_prompt():
    reader = PromptReader(make_tokenizer(TEMPLATE))
    plain = reader.encode(EXAMPLES[0], HINTS)
    other = replace(EXAMPLES[0], emotion="furious", situation="My cat ran away.", response="Good riddance.")
    assert reader.encode(other, HINTS).prompt == plain.prompt


# -- scoring and answering -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CONFIGS)
def test_only_the_reply_is_scored_and_as_the_network_itself_scores_it(kind):
    model, reader = build(kind)
    item = reader.encode(EXAMPLES[0], HINTS)
    ((nll, n),) = model.nats(reader, [item])
    with torch.no_grad():
        if kind == "t5":
            labels = torch.tensor([item.reply])
            logits = model.network(input_ids=torch.tensor([item.prompt]), labels=labels).logits
        else:
            ids = torch.tensor([item.prompt + item.reply])
            logits = model.network(input_ids=ids).logits[:, len(item.prompt) - 1 : -1]
    expected = -logits.log_softmax(-1)[0].gather(1, torch.tensor(item.reply)[:, None]).sum().item()
    assert n == len(item.reply) and nll == pytest.approx(expected, rel=1e-5)
    loss = model(**reader.learning_batch([item]))
    assert loss.loss.item() == pytest.approx(nll / n, rel=1e-5) and int(loss.counts["words"]) == n


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_the_output_layer_sees_the_pieces_of_replies_alone(kind):
    """Loss and gradients are those of all logits; a model that scales its logits is not cut short."""
    model, reader = build(kind, lora={"r": 2, "dropout": 0.0})
    batch = reader.learning_batch([reader.encode(e, HINTS) for e in EXAMPLES])
    found = {}
    for is_plain in (True, False):
        model.__dict__["_has_plain_head"] = is_plain
        model.zero_grad()
        out = model(**batch)
        out.loss.backward()
        gradients = [p.grad.clone() for name, p in sorted(model.named_parameters()) if is_adapter(name)]
        found[is_plain] = (out.loss.item(), gradients, out.logits.numel())
    assert found[True][0] == pytest.approx(found[False][0], rel=1e-6)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found[True][1], found[False][1], strict=True))
    assert found[True][2] < found[False][2]
    del model.__dict__["_has_plain_head"]
    assert model._has_plain_head
    scaled = {**base_config("llama", reader.tokenizer), "model_type": "granite", "logits_scaling": 2.0}
    assert not LanguageModel(LanguageModelConfig(base_config=scaled)).eval()._has_plain_head


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_batch_gives_what_singles_give(kind):
    model, reader = build(kind)
    items = [reader.encode(e, h) for e, h in zip(EXAMPLES, (HINTS, None, Hints("sad")), strict=True)]
    together = model.nats(reader, items)
    for item, (nll, n) in zip(items, together, strict=True):
        ((alone, n_alone),) = model.nats(reader, [item])
        assert nll == pytest.approx(alone, rel=1e-4) and n == n_alone
    for settings in ({"max_new_tokens": 12}, {"max_new_tokens": 8, "num_beams": 3}):
        answers = dict(model.answers(reader, items, lambda _, s=settings: s))
        singles = [dict(model.answers(reader, [item], lambda _, s=settings: s))[0] for item in items]
        assert [answers[i] for i in range(len(items))] == singles
    assert len({tuple(answer) for answer in answers.values()}) > 1, "the models must not all say the same"


def test_causal_prompts_are_padded_on_the_left_and_padding_content_does_not_matter():
    model, reader = build("llama")
    items = [reader.encode(example) for example in EXAMPLES]
    batch = reader.answering_batch(items)
    assert batch["attention_mask"][:, -1].all() and not batch["attention_mask"][0, 0]
    answers = model.continue_batch(reader, batch, max_new_tokens=10)
    noisy = {**batch, "input_ids": batch["input_ids"].masked_fill(~batch["attention_mask"], 77)}
    assert model.continue_batch(reader, noisy, max_new_tokens=10) == answers


def test_a_bases_own_sampling_settings_are_not_taken_over(tmp_path):
    folder = make_folder(tmp_path / "m")
    plain = LanguageModel.build(LanguageModelConfig(base=str(folder)))
    import json

    own = json.loads((folder / "generation_config.json").read_text())
    own |= {"do_sample": True, "temperature": 5.0, "repetition_penalty": 9.0, "max_length": 3}
    (folder / "generation_config.json").write_text(json.dumps(own))
    loud = LanguageModel.build(LanguageModelConfig(base=str(folder)))
    items = None
    for model in (plain, loud):
        reader = make_reader(model.config, model.eval(), load_tokenizer(folder))
        made = dict(model.answers(reader, [reader.encode(e) for e in EXAMPLES], lambda _: {"max_new_tokens": 10}))
        assert items in (None, made)
        items = made


# -- LoRA, saving --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CONFIGS)
def test_lora_teaches_the_adapters_alone(kind):
    model, reader = build(kind, lora={"r": 4, "dropout": 0.0})
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    batch = reader.learning_batch([reader.encode(e) for e in EXAMPLES])
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(model.learns(name))
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=2e-2)
    model.train()
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        losses.append(model(**batch).loss)
        losses[-1].backward()
        optimizer.step()
    assert losses[-1].item() < 0.95 * losses[0].item()  # adapters on random weights can do little
    changed = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert changed == {name for name in before if is_adapter(name)} != set()


def test_every_weight_learns_without_lora():
    model, reader = build("t5")
    model.train()
    model(**reader.learning_batch([reader.encode(e) for e in EXAMPLES])).loss.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum()] == []


def test_a_tuned_model_is_its_adapters_and_the_name_of_its_base(tmp_path):
    base = make_folder(tmp_path / "base")
    model = LanguageModel.build(LanguageModelConfig(base=str(base), lora={"r": 4}, tuned=True)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if is_adapter(name):
                parameter.normal_(std=0.1)
    model.save_pretrained(tmp_path / "tuned")
    own, whole = ((tmp_path / place / "model.safetensors").stat().st_size for place in ("tuned", "base"))
    assert own < whole / 2
    reader = make_reader(model.config, model, load_tokenizer(base))
    loaded = LanguageModel.from_pretrained(tmp_path / "tuned")
    items = [reader.encode(e) for e in EXAMPLES]
    assert loaded.nats(reader, items) == model.nats(reader, items)
    untuned = LanguageModel.build(LanguageModelConfig(base=str(base))).eval()
    assert untuned.nats(reader, items) != model.nats(reader, items)
    untuned.save_pretrained(tmp_path / "as_it_is")
    assert not (tmp_path / "as_it_is" / "model.safetensors").exists()
    assert LanguageModel.from_pretrained(tmp_path / "as_it_is").nats(reader, items) == untuned.nats(reader, items)


def test_a_gguf_file_scores_and_answers_as_the_folder_it_was_made_of(tmp_path):
    folder = make_folder(tmp_path / "base")
    (tmp_path / "one").mkdir()
    file = make_gguf(folder, tmp_path / "one" / "base.gguf")
    assert form_of(file) == "causal"
    found = {}
    for place in (folder, file, tmp_path / "one"):
        model = LanguageModel.build(LanguageModelConfig(base=str(place))).eval()
        reader = make_reader(model.config, model, load_tokenizer(place))
        items = [reader.encode(e) for e in EXAMPLES]
        answers = sorted(model.answers(reader, items, lambda _: {"max_new_tokens": 12, "do_sample": False}))
        found[place] = [item.prompt for item in items], model.nats(reader, items), answers
    assert found[file] == found[tmp_path / "one"]
    assert found[file][0] == found[folder][0]
    assert found[file][2] == found[folder][2]
    for (ours, n), (theirs, n_theirs) in zip(found[file][1], found[folder][1], strict=True):
        assert n == n_theirs and ours == pytest.approx(theirs, rel=1e-5)


def test_lora_on_a_gguf_file_learns_and_is_saved_without_it(tmp_path):
    file = make_gguf(make_folder(tmp_path / "base"), tmp_path / "base.gguf")
    model = LanguageModel.build(LanguageModelConfig(base=str(file), lora={"r": 2}, tuned=True))
    reader = make_reader(model.config, model, load_tokenizer(file))
    model(**reader.learning_batch([reader.encode(e) for e in EXAMPLES])).loss.backward()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            assert parameter.requires_grad == is_adapter(name)
            if is_adapter(name):
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    model.eval().save_pretrained(tmp_path / "tuned")
    items = [reader.encode(e) for e in EXAMPLES]
    assert LanguageModel.from_pretrained(tmp_path / "tuned").nats(reader, items) == model.nats(reader, items)


def test_without_the_gguf_package_the_command_that_gets_it_is_named(tmp_path, monkeypatch):
    file = make_gguf(make_folder(tmp_path / "base"), tmp_path / "base.gguf")
    monkeypatch.setattr("transformers.modeling_gguf_pytorch_utils.is_gguf_available", lambda: False)
    for read in (form_of, load_tokenizer, lambda place: load_base(place, "causal")):
        with pytest.raises(MissingDependencyError, match=r"pip install 'empatheia\[gguf\]'"):
            read(file)


def test_a_broken_gguf_file_is_named(tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"GGUF but not really")
    for read in (form_of, load_tokenizer, lambda place: load_base(place, "causal")):
        with pytest.raises(CheckpointError, match=r"x\.gguf"):
            read(tmp_path / "x.gguf")


def gguf_of(fields: dict, dims: tuple[int, ...] = (8, 64), n_tensors: int = 1, size: int = 4096) -> bytes:
    """A header with fields and tensors, and zeros up to a size."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    out = b"GGUF" + struct.pack("<IQQ", 3, n_tensors, len(fields))
    for name, value in fields.items():
        if isinstance(value, str):
            value = struct.pack("<I", 8) + text(value)
        out += text(name) + (struct.pack("<IQ", 10, value) if isinstance(value, int) else value)
    for _ in range(min(n_tensors, 9)):
        out += (
            text("t") + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<IQ", 0, 0)
        )
    return out.ljust(size, b"\0")


SIZED = {"general.architecture": "llama", "llama.embedding_length": 8, "llama.block_count": 2}
SIZED |= {"llama.feed_forward_length": 16}
LIES = {
    "no sizes": gguf_of({"general.architecture": "llama"}),
    "no field at all": gguf_of({}),
    "a network of billions": gguf_of(SIZED | {"llama.block_count": 10**9}),
    "a vocabulary of billions": gguf_of(SIZED | {"llama.vocab_size": 10**9}),
    "experts": gguf_of(SIZED | {"llama.expert_count": 10**6}),
    "a tensor of billions": gguf_of(SIZED, dims=(1 << 20, 1 << 20)),
    "dimensions": gguf_of(SIZED, dims=(1,) * 9),
    "tensors": gguf_of(SIZED, n_tensors=1 << 40),
    "a list beyond the file": gguf_of(SIZED | {"x": struct.pack("<IIQ", 9, 6, 1 << 40)}),
    "texts beyond the file": gguf_of(SIZED | {"x": struct.pack("<IIQ", 9, 8, 1 << 20)}, size=0),
    "a text beyond the file": gguf_of({"x": struct.pack("<IQ", 8, 1 << 60)}),
    "an unknown kind": gguf_of({"x": struct.pack("<I", 77)}),
    "a list of lists": gguf_of({"x": struct.pack("<IIQ", 9, 9, 1)}),
    "another version": b"GGUF" + struct.pack("<IQQ", 9, 0, 0),
}


@pytest.mark.parametrize("name", LIES)
def test_a_gguf_header_is_not_believed(tmp_path, name):
    """Nothing is built from it: what it lacks would be taken from a model of billions of weights."""
    file = tmp_path / "x.gguf"
    file.write_bytes(LIES[name])
    for read in (form_of, load_tokenizer, lambda place: load_base(place, "causal")):
        with pytest.raises(CheckpointError, match=r"x\.gguf is not a complete GGUF file of a language model"):
            read(file)


def test_a_cut_gguf_file_is_told(tmp_path):
    whole = make_gguf(make_folder(tmp_path / "base"), tmp_path / "base.gguf")
    check_gguf(whole)
    raw = whole.read_bytes()
    for length in (0, 3, 20, 24, 40, 200, 1000):
        whole.write_bytes(raw[:length])
        with pytest.raises(CheckpointError, match=r"base\.gguf is not a complete GGUF file"):
            check_gguf(whole)


def test_weights_of_another_model_are_refused(tmp_path):
    small, _ = build("llama", lora={"r": 2})
    large, _ = build("llama", lora={"r": 4})
    small.save_pretrained(tmp_path / "a")
    large.save_pretrained(tmp_path / "b")
    (tmp_path / "a" / "model.safetensors").write_bytes((tmp_path / "b" / "model.safetensors").read_bytes())
    with pytest.raises(CheckpointError, match="do not fit the model"):
        LanguageModel.from_pretrained(tmp_path / "a")
    (tmp_path / "a" / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"has no model\.safetensors"):
        LanguageModel.from_pretrained(tmp_path / "a")


def test_without_peft_the_command_that_gets_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'empatheia\[lora\]'"):
        build("llama", lora={})
    build("llama")


def test_wrong_settings_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"form is 'casual'.*'causal'"):
        LanguageModelConfig(form="casual")
    with pytest.raises(ConfigError, match=r"no setting 'rank'.*r, alpha, dropout, targets"):
        LanguageModelConfig(lora={"rank": 3})
    with pytest.raises(ConfigError, match="neither base nor base_config"):
        LanguageModel(LanguageModelConfig())
    with pytest.raises(ConfigError, match="needs llm"):
        LanguageModelConfig(form="endpoint")
    folder = make_folder(tmp_path / "m", "t5", None)
    assert form_of(folder) == "seq2seq"
    with pytest.raises(CheckpointError, match="cannot be loaded as a causal language model"):
        LanguageModel.build(LanguageModelConfig(form="causal", base=str(folder)))
