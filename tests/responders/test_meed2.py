"""Checks of the MEED2 specification (section 13) that concern the generator, its encoding and its decoding."""

import math

import pytest
import torch
from transformers import NoRepeatNGramLogitsProcessor

from empatheia.errors import DataError, DecodingError
from empatheia.records.dialogue import Dialogue
from empatheia.taxonomy import LABELS_41
from empatheia_research.decoding.shrinking_beams import BLOCKED, repeats, shrinking_beams
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.responders.meed2 import MEED2, MEED2Config, add_labels, segments_of
from empatheia_research.responders.seq2seq import ResponderOutput, word_loss
from empatheia_research.responders.transformer import Transformer, TransformerConfig
from empatheia_research.text.collation import Collator, Layout, encode_examples
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.training.tasks.respond import is_whole

SIZES = {"vocab_size": 60, "width": 24, "n_encoder_layers": 1, "n_decoder_layers": 2, "n_heads": 2, "ffn_width": 48}
IDS = torch.tensor([[2, 11, 12, 13, 3, 3, 14, 15, 3]])
ROLES = torch.tensor([[0, 1, 1, 1, 1, 2, 2, 2, 2]])


def model(**fields):
    torch.manual_seed(0)
    return MEED2(MEED2Config(**{**SIZES, **fields})).eval()


def n_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


# -- sizes ---------------------------------------------------------------------------------------------------


def test_parameters_are_the_published_ones():  # check "Parameters"; the predictor's are in test_reaction.py
    with torch.device("meta"):
        generator = MEED2(MEED2Config(vocab_size=50_265, pad_token_id=1, bos_token_id=0, eos_token_id=2))
        plain = {"turn_labels": False, "reply_label": False, "segments": False}
        baseline = MEED2(MEED2Config(vocab_size=50_265, pad_token_id=1, bos_token_id=0, eos_token_id=2, **plain))
    assert n_parameters(generator) == 40_371_765
    assert n_parameters(generator.encoder) - n_parameters(generator.encoder.stack) == 15_123_600
    assert {n_parameters(layer) for layer in generator.encoder.stack.layers} == {1_083_900}
    assert {n_parameters(layer) for layer in generator.decoder.layers} == {1_445_700}
    assert n_parameters(generator) - n_parameters(baseline) == (41 + 2) * 300
    assert round(3 * n_parameters(baseline) / 1e6) == 121  # table 7 counts Adam's moments
    assert 3 * (40_371_765 + 19_652_441) == 180_072_618


# -- encoding ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer():
    return DialogueTokenizer.train_words(["a b c d e f g h i"])


@pytest.fixture(scope="module")
def encoded(tokenizer):
    examples = Dialogue.of("a b c", "d e", "f g h i", id="d").examples(("listener", "speaker"))
    return encode_examples(examples, tokenizer, Layout(100, separators="double"))


def test_utterances_of_3_2_and_4_pieces_become_9_and_5(encoded, tokenizer):  # check "Encoding"
    assert len(encoded) == 2  # 3 utterances give 2 examples
    item = encoded[1]
    cls, sep = tokenizer.cls_id, tokenizer.sep_id
    a, b, c, d, e = (tokenizer.encode(word).ids[0] for word in "abcde")
    assert item.input_ids == [cls, a, b, c, sep, sep, d, e, sep]
    assert item.turn_ids == [-1, 0, 0, 0, 0, 1, 1, 1, 1]
    assert len(item.labels) == 5 and item.labels[-1] == tokenizer.eos_id
    batch = Collator(("input_ids", "attention_mask", "role_ids", "labels"), 0)([item])
    assert segments_of(batch["role_ids"]).tolist() == [[0, 0, 0, 0, 0, 1, 1, 1, 1]]
    system = model(vocab_size=len(tokenizer))
    seen = []
    system.encoder.positions.register_forward_hook(lambda module, args, out: seen.append(args[0].tolist()))
    output = system(**batch)
    assert seen == [list(range(2, 11)), list(range(2, 7))]  # the decoder reads <s> and 4 pieces
    assert output.logits.shape[:2] == (1, 5)


def test_the_replys_segment_is_the_other_one_than_the_last_turns():
    system = model()
    assert system.encoder(IDS, torch.ones_like(IDS), ROLES).reply_segment_ids.tolist() == [0]
    mask = torch.tensor([[1, 1, 1, 1, 1, 0, 0, 0, 0]])
    assert system.encoder(IDS, mask, ROLES).reply_segment_ids.tolist() == [1]


def test_a_context_of_100_pieces_is_kept_and_101_skipped(tokenizer):  # check "Encoding"
    for n_words, n_pieces, whole in ((95, 100, True), (96, 101, False)):  # <s> u </s> </s> b </s>
        examples = Dialogue.of(" ".join("a" * n_words), "b", "c").examples(("speaker",))
        (uncut,) = encode_examples(examples, tokenizer, Layout(1000, separators="double"))
        (item,) = encode_examples(examples, tokenizer, Layout(100, separators="double"))
        assert len(uncut.input_ids) == n_pieces and is_whole(item, 99) is whole
        assert len(item.input_ids) <= 100 and (item.input_ids == uncut.input_ids) is whole


def test_a_reply_of_99_pieces_is_kept_and_100_skipped(tokenizer):
    for n_words, whole in ((99, True), (100, False)):
        dialogue = Dialogue.of("a", " ".join("b" * n_words))
        item = encode_examples(dialogue.examples(), tokenizer, Layout(100, separators="double"), max_target=100)[0]
        assert is_whole(item, 99) is whole


# -- the sum -------------------------------------------------------------------------------------------------


def test_what_is_read_is_the_normalised_sum_of_four_vectors():
    encoder = model().encoder
    labels = torch.tensor([[4, -1, 40]])
    found = encoder.embed(torch.tensor([[7, 8, 9]]), 3, torch.tensor([[1, 0, 1]]), labels)
    for i, (piece, segment, label) in enumerate(((7, 1, 4), (8, 0, None), (9, 1, 40))):
        total = encoder.words.weight[piece] + encoder.positions.weight[5 + i] + encoder.segments.weight[segment]
        total = total if label is None else total + encoder.labels.weight[label]
        torch.testing.assert_close(found[0, i], torch.nn.functional.layer_norm(total, (24,)))


def test_pieces_beyond_the_last_position_share_it():
    encoder = model(n_positions=4).encoder
    found = encoder.embed(torch.full((1, 6), 7), 0, None, None)[0]
    torch.testing.assert_close(found[3], found[5])
    assert not torch.allclose(found[2], found[3])


def test_one_label_for_all_pieces_of_the_reply():
    system = model()
    encoding = system.encoder(IDS, None, ROLES, None, torch.tensor([35]))
    found = system.decoder_inputs(torch.tensor([[4, 9]]), encoding, 0)
    expected = system.encoder.embed(
        torch.tensor([[4, 9]]), 0, torch.zeros(1, 2, dtype=torch.long), torch.full((1, 2), 35)
    )
    torch.testing.assert_close(found, expected)


def test_unknown_labels_add_nothing():
    table = torch.nn.Embedding(41, 3)
    states = torch.zeros(1, 2, 3)
    found = add_labels(states, table, torch.tensor([[-1, 6]]))
    assert found[0, 0].tolist() == [0, 0, 0] and torch.equal(found[0, 1], table.weight[6])


def test_a_pretrained_encoder_reads_as_before_when_its_label_tables_are_zero(tmp_path):
    from transformers import RobertaConfig, RobertaModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = RobertaConfig(vocab_size=60, max_position_embeddings=64, type_vocab_size=1, pad_token_id=1, **sizes)
    torch.manual_seed(1)
    source = RobertaModel(config).eval()
    source.save_pretrained(tmp_path)
    system = model(encoder_config=config.to_dict())
    system.load_encoder(str(tmp_path))
    labels = torch.full_like(IDS, 5)
    found = system.encoder(IDS, torch.ones_like(IDS), ROLES, labels).last_hidden_state
    with torch.no_grad():
        states = source(input_ids=IDS, attention_mask=torch.ones_like(IDS)).last_hidden_state
    torch.testing.assert_close(found, system.encoder.pretrained.projection(states))
    assert not any("pooler" in name for name, _ in system.named_parameters())


# -- labels of the reply -------------------------------------------------------------------------------------


def scored(system, **more):
    batch = {"input_ids": IDS, "role_ids": ROLES, "labels": torch.tensor([[9, 8, 5]]), **more}
    return system(**batch)


def test_the_gold_label_teaches_and_the_predicted_one_answers():
    system = model(dropout=0.0)
    predicted, gold = torch.tensor([3]), torch.tensor([35])
    answering = scored(system, reply_label_ids=predicted, gold_reply_label_ids=gold)
    torch.testing.assert_close(answering.logits, scored(system, reply_label_ids=predicted).logits)
    learning = scored(system.train(), reply_label_ids=predicted, gold_reply_label_ids=gold)
    told = scored(system.eval(), reply_label_ids=gold)
    torch.testing.assert_close(learning.loss, told.loss)
    assert not torch.allclose(told.loss, answering.loss)


def test_a_label_may_be_left_out_in_training_alone():
    system = model(dropout=0.0, reply_label_dropout=0.5)
    gold, none = torch.tensor([35]), torch.tensor([-1])
    told, untold = (scored(system.eval(), reply_label_ids=label).loss.item() for label in (gold, none))
    torch.manual_seed(0)
    system.train()
    seen = {round(scored(system, gold_reply_label_ids=gold).loss.item(), 5) for _ in range(20)}
    assert seen == {round(told, 5), round(untold, 5)}
    with pytest.raises(ValueError, match=r"reply_label_dropout is 1; accepted: 0 to below 1"):
        model(reply_label_dropout=1)


def test_a_caller_may_choose_the_label():
    system = model(tie_words=True)
    inputs = {"input_ids": IDS.repeat(2, 1), "role_ids": ROLES.repeat(2, 1), "max_new_tokens": 6, "do_sample": False}
    ids = torch.tensor([LABELS_41.index("consoling"), LABELS_41.index("joyful")])
    told = system.generate(**inputs, reply_label_ids=ids)
    named = system.generate(**inputs, label=["Consoling", "joyful"], reply_label_ids=torch.tensor([0, 0]))
    assert named.tolist() == told.tolist()
    one = system.generate(**inputs, label="consoling")
    assert one[0].tolist() == one[1].tolist() and one[0].tolist() == named[0, : one.shape[1]].tolist()


def test_labels_that_cannot_be_are_refused():
    with pytest.raises(DataError, match="unknown emotion or intent 'happyish'"):
        model().generate(input_ids=IDS, label="happyish")
    with pytest.raises(DecodingError, match="2 labels for 1 contexts"):
        model().generate(input_ids=IDS, label=["sad", "joyful"])
    with pytest.raises(DecodingError, match="takes no label"):
        model(reply_label=False).generate(input_ids=IDS, label="sad")


def test_the_plain_transformer_reads_no_label():
    system = model(turn_labels=False, reply_label=False, segments=False)
    labels = torch.full_like(IDS, 7)
    found = scored(system, turn_label_ids=labels, reply_label_ids=torch.tensor([3])).logits
    torch.testing.assert_close(found, scored(system).logits)
    assert system.told_features == {} and model().told_features == {"reply_label_ids": "gold_reply_label_ids"}


def test_the_released_loss_averages_within_replies_first():  # section 7.4
    system = model(variant="repo", dropout=0.0).train()
    labels = torch.tensor([[9, 8, 7, 5], [6, 5, -100, -100]])
    output = system(input_ids=IDS.repeat(2, 1), role_ids=ROLES.repeat(2, 1), labels=labels)
    nll = word_loss(output.logits, labels, 0)
    expected = (nll[0].sum() / 4 + nll[1].sum() / 2) / 2
    torch.testing.assert_close(output.losses["words"], expected)
    assert output.counts["words"] == 2
    paper = model(dropout=0.0)(input_ids=IDS.repeat(2, 1), role_ids=ROLES.repeat(2, 1), labels=labels)
    torch.testing.assert_close(paper.losses["words"], nll.sum() / 6)


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"variant": "code"}, "unknown variant 'code'"), ({"loss_reduction": "none"}, "loss_reduction is 'none'")],
)
def test_unknown_words_in_the_configuration_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        MEED2Config(**fields)


# -- decoding ------------------------------------------------------------------------------------------------

FOUR_GRAMS = [  # check "4-gram block"
    ([7, 7, 7, 7], False),
    ([7, 7, 7, 7, 7], True),
    ([1, 2, 3, 4, 1, 2, 3], False),
    ([1, 2, 3, 4, 1, 2, 3, 4], True),
    ([1, 2, 3, 4, 5, 2, 3, 4, 5], True),
]


@pytest.mark.parametrize(("pieces", "is_blocked"), FOUR_GRAMS)
def test_a_second_4_gram_is_blocked(pieces, is_blocked):
    assert repeats(torch.tensor([pieces]), 4).tolist() == [is_blocked]
    processor = NoRepeatNGramLogitsProcessor(4)  # what `no_repeat_ngram_size: 4` uses, <s> in front
    can_be_said = all(
        processor(torch.tensor([[0, *pieces[:i]]]), torch.zeros(1, 9))[0, piece] == 0 for i, piece in enumerate(pieces)
    )
    assert can_be_said is not is_blocked


class Chain(Transformer):
    """Says the next piece by the last one alone: ``table[last]`` are probabilities."""

    table: torch.Tensor

    def forward(self, decoder_input_ids=None, **_):
        return ResponderOutput(logits=self.table[decoder_input_ids].log())


START, END, A, B, C = 4, 5, 6, 7, 8


def chain(**rows):
    """Rows by piece name; what is left of a row goes to piece 9; behind it and unnamed ones all pieces are alike."""
    system = Chain(TransformerConfig(vocab_size=10, width=8, n_encoder_layers=1, n_decoder_layers=1, n_heads=2))
    table = torch.full((10, 10), 1e-9)
    names = {"start": START, "end": END, "a": A, "b": B, "c": C}
    for i in range(10):
        row = rows.get(next((name for name, piece in names.items() if piece == i), ""), {})
        for name, p in row.items():
            table[i, names[name]] = p
        table[i, 9] = max(1e-9, 1 - sum(row.values()))
    table[[i for i in range(10) if i not in names.values()]] = 0.1
    system.table = table / table.sum(-1, keepdim=True)
    return system.eval()


def say(system, **settings):
    found = system.generate(
        torch.tensor([[2, 3]]),
        attention_mask=torch.ones(1, 2, dtype=torch.long),
        do_sample=False,
        use_cache=False,
        **{"max_new_tokens": 4, **settings},
    )
    return [[i for i in row.tolist()[1:] if i != 0] for row in found]


def test_shrinking_beam_keeps_the_place_of_what_is_finished():  # check "Beam"
    system = chain(start={"end": 0.6, "a": 0.3, "b": 0.1}, a={"b": 0.6, "c": 0.4}, b={"end": 1.0}, c={"end": 1.0})
    steps = []
    own = system.forward
    system.forward = lambda **kwargs: steps.append(kwargs["decoder_input_ids"]) or own(**kwargs)
    found = say(system, num_beams=2, num_return_sequences=2, custom_generate=shrinking_beams(4))
    assert found == [[END], [A, B, END]]  # A goes on alone: never both A B and A C
    running = [sum(piece not in (0, END) for piece in ids[:, -1].tolist()) for ids in steps]
    assert running == [2, 1, 1]


@pytest.mark.parametrize("settings", [{"custom_generate": shrinking_beams(4)}, {}])
def test_length_counts_the_end_mark_but_not_the_start(settings):
    """Check "Beam": -3.0 at length 3 (-1.0) beats -2.4 at length 2 (-1.2); by the sum it would not."""
    long, short = math.exp(-1.5), math.exp(-1.2)
    rows = {"start": {"a": long, "b": short}, "a": {"c": math.exp(-0.75)}, "c": {"end": math.exp(-0.75)}}
    system = chain(**rows, b={"end": short})
    wanted = {1.0: [A, C, END], 0.0: [B, END]}
    for alpha, best in wanted.items():
        found = say(system, num_beams=6, length_penalty=alpha, max_new_tokens=4, early_stopping="never", **settings)
        assert found[0] == best


def slow_shrinking_beams(tables, width, blocked, alpha, most):
    """Section 7.6 step by step over lists; best first. Scores of what comes at a place, by place and last piece."""
    found = [([], 0.0)]  # pieces behind <s>, log-probability
    live, steps = [0], 0
    while live and steps < most - 1:
        candidates = []
        for i in live:
            pieces, score = found[i]
            row = tables[len(pieces), pieces[-1] if pieces else START].tolist()
            candidates += [(score + p, [*pieces, piece]) for piece, p in enumerate(row)]
        candidates.sort(key=lambda candidate: -candidate[0])
        found = [found[i] for i in range(len(found)) if i not in live]
        n = len(found)
        for score, pieces in candidates[: width - n]:
            grams = [tuple(pieces[k : k + blocked]) for k in range(len(pieces) - blocked + 1)]
            is_twice = pieces[-1] != END and len(set(grams)) < len(grams)
            found.append((pieces, -1e20 if is_twice else score))
        live = [i for i in range(n, len(found)) if found[i][0][-1] != END]
        steps += 1
    for i in live:
        pieces, score = found[i]
        found[i] = ([*pieces, END], score + tables[len(pieces), pieces[-1], END].item())
    return sorted(((score / len(pieces) ** alpha, pieces) for pieces, score in found), key=lambda pair: -pair[0])


@pytest.mark.parametrize("seed", range(12))
def test_shrinking_beams_against_a_slow_search(seed):
    torch.manual_seed(seed)
    system = chain()
    tables = (2 * torch.randn(8, 10, 10)).log_softmax(-1)  # without equal scores, which a search may order as it likes
    system.forward = lambda decoder_input_ids, **_: ResponderOutput(
        logits=torch.stack([tables[i, column] for i, column in enumerate(decoder_input_ids.unbind(1))], dim=1)
    )
    width, alpha, blocked = 2 + seed % 4, (0.0, 1.0)[seed % 2], 1 + seed % 3
    expected = slow_shrinking_beams(tables, width, blocked, alpha, 7)
    settings = {"custom_generate": shrinking_beams(blocked), "num_beams": width, "num_return_sequences": width}
    ids = system.generate(
        torch.tensor([[2, 3]]), do_sample=False, use_cache=False, max_new_tokens=7, length_penalty=alpha, **settings
    )
    found = [row[1 : row.index(END, 1) + 1] for row in ids.tolist()]
    n_sure = sum(score > -1e18 for score, _ in expected)  # blocked ones are all alike
    assert found[:n_sure] == [pieces for _, pieces in expected[:n_sure]]


def test_a_hypothesis_that_never_ends_gets_an_end_mark_at_the_limit():
    """Section 7.6, 5: so many steps, and one piece more."""
    system = chain(start={"a": 1.0}, a={"b": 0.9, "end": 1e-6}, b={"a": 0.9, "end": 1e-6})
    (found,) = say(system, num_beams=1, max_new_tokens=5, custom_generate=shrinking_beams(0))
    assert found == [A, B, A, B, END]


def test_blocked_hypotheses_are_crowded_out_and_not_checked_once_finished():
    system = chain(start={"a": 0.9, "b": 0.1}, a={"a": 0.9, "end": 0.1}, b={"end": 1.0})
    free = say(system, num_beams=2, max_new_tokens=8, custom_generate=shrinking_beams(0))[0]
    assert free == [A] * 7 + [END]
    blocked = say(system, num_beams=2, max_new_tokens=8, custom_generate=shrinking_beams(2))[0]
    assert not repeats(torch.tensor([blocked]), 2).any()
    assert BLOCKED < -1e19


def test_4_gram_blocking_sees_the_reply_alone():
    """The reply says a 4-gram of the context, and says it once."""
    system = chain(start={"a": 1.0}, a={"b": 1.0}, b={"c": 1.0}, c={"a": 0.9, "end": 0.1})
    context = torch.tensor([[2, A, B, C, A, B, C, A, 3]])
    found = system.generate(context, do_sample=False, use_cache=False, max_new_tokens=12, no_repeat_ngram_size=4)
    reply = [i for i in found[0].tolist()[1:] if i != 0]
    assert reply[:4] == [A, B, C, A]
    assert not repeats(torch.tensor([reply[: reply.index(9)] if 9 in reply else reply]), 4).any()


def test_shrinking_beam_of_width_1_is_greedy_and_a_cache_changes_nothing():
    system = model(tie_words=True)
    inputs = {"input_ids": IDS.repeat(2, 1), "role_ids": ROLES.repeat(2, 1), "max_new_tokens": 8, "do_sample": False}
    inputs["turn_label_ids"] = torch.tensor([[1] * 9, [30] * 9])
    beams = {"num_beams": 4, "num_return_sequences": 4, "custom_generate": shrinking_beams(4)}
    cached = system.generate(**inputs, **beams)
    assert cached.tolist() == system.generate(**inputs, **beams, use_cache=False).tolist()
    alone = [
        system.generate(**{k: v[i : i + 1] if torch.is_tensor(v) else v for k, v in inputs.items()}, **beams)
        for i in (0, 1)
    ]
    for rows, own in zip(cached.view(2, 4, -1), alone, strict=True):
        assert [[i for i in row if i] for row in rows.tolist()] == [[i for i in row if i] for row in own.tolist()]
    with pytest.raises(DecodingError, match="do_sample=False"):
        system.generate(**{**inputs, "do_sample": True}, **beams)
    with pytest.raises(DecodingError, match="blocked=-1"):
        shrinking_beams(-1)


# -- recipes -------------------------------------------------------------------------------------------------

GENERATORS = ["generator_raw", "generator_dialogues", "generator_edos", "generator", "generator_repo"]
TRANSFORMERS = ["transformer_raw", "transformer_dialogues", "transformer_edos", "transformer_finetuned"]


@pytest.mark.parametrize("name", GENERATORS + TRANSFORMERS)
def test_full_size_is_the_published_one(name):  # sections 7.1, 7.3, 7.5 and 7.6
    recipe = load_recipe(f"recipes/meed2/{name}.yaml", "full")
    (stage,) = recipe.stages
    assert (stage.batch_examples, stage.batch_tokens, stage.select) == (512, None, "words")
    assert (stage.learning_rate, stage.schedule, stage.warmup_steps, stage.max_grad_norm) == (5e-5, "constant", 0, 0.0)
    assert (stage.betas, stage.eps, stage.weight_decay, stage.optimizer) == ((0.9, 0.98), 1e-6, 0.0, None)
    made = MEED2Config(**recipe.model)
    assert (made.width, made.n_encoder_layers, made.n_decoder_layers, made.n_heads) == (300, 4, 4, 6)
    assert (made.ffn_width, made.dropout, made.n_positions, made.label_smoothing) == (1200, 0.1, 100, 0.0)
    assert not made.tie_words and not made.scale_words
    reads = name in GENERATORS
    assert (made.turn_labels, made.reply_label, made.segments) == (reads, reads, reads)
    data = recipe.data
    assert (data.separators, data.max_source, data.max_target, data.overlong) == ("double", 100, 99, "skip")
    assert data.roles == ("speaker", "listener") and data.test_turns == "one"
    small = load_recipe(f"recipes/meed2/{name}.yaml", "cpu").data  # it may learn from fewer turns
    assert (small.roles, small.test_turns) == (data.roles, "one")
    assert recipe.tokenizer.folder == "FacebookAI/roberta-base"
    published = {"generator": 20, "generator_repo": 20, "generator_dialogues": 50, "generator_edos": 10}
    assert stage.epochs == published.get(name, stage.epochs)
    is_repo = name.endswith("_repo")
    assert made.loss_reduction == ("item" if is_repo else "mean")
    assert recipe.decoding.strategy == ("shrinking_beam" if is_repo else "beam")
    decoding = recipe.decoding
    assert (decoding.num_beams, decoding.no_repeat_ngram_size, decoding.length_penalty) == (32, 4, 1.0)
    assert decoding.max_new_tokens == (100 if is_repo else 99)  # the released search: 99 steps, then the end mark
    started = {"generator": "generator_dialogues", "generator_repo": "generator_dialogues"}
    started |= {"generator_edos": "generator_dialogues", "transformer_edos": "transformer_dialogues"}
    started |= {"transformer_finetuned": "transformer_dialogues"}
    start = f"runs/meed2/{started[name]}/full-seed1024" if name in started else None
    assert (recipe.start and recipe.start.format(size="full", seed=recipe.seed)) == start


def test_weights_start_as_keras_starts_them():  # section 7.3
    system = model(vocab_size=500, width=60, ffn_width=240, n_heads=6)
    for table in (system.encoder.words, system.encoder.positions, system.encoder.segments, system.encoder.labels):
        assert table.weight.abs().max() <= 0.05 and table.weight.std().item() == pytest.approx(0.1 / 12**0.5, rel=0.15)
    for layer in (module for module in system.modules() if isinstance(module, torch.nn.Linear)):
        bound = (6 / sum(layer.weight.shape)) ** 0.5
        assert 0.9 * bound < layer.weight.abs().max() <= bound
        assert layer.bias is None or not layer.bias.any()
