"""IMAGINE; numbers in the docstrings are the checks of its specification, section 10."""

import pytest
import torch
from contract import SIZES, all_cases
from knowing import LEARNING, overfit, sample_batch, tokenizer

from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.responders.imagine import Imagine, ImagineConfig

CASES = all_cases()
WIDTH = 24


def built(name="imagine"):
    case = CASES[name]
    return case.build().eval(), case.batch()


def encoded(model, batch):
    features = {k: v for k, v in batch.items() if k in model.features and k not in model.gold_features}
    with torch.no_grad():
        return model.encode(**features)


def test_size():
    """Specification 2.9: 601 V + about 1.96 million."""
    with torch.device("meta"):
        n = sum(parameter.numel() for parameter in Imagine(ImagineConfig(vocab_size=1000)).parameters())
    encoders, refiner, mixer, decoder = 3 * 230_150, 320_150, 270_000, 350_750
    tables, heads = 307_200 + 600, (300 * 32 + 32) + (32 * 300 + 300) + 3 * (600 + 2) + (2 * 300 + 300)
    assert n - 601 * 1000 == encoders + refiner + mixer + decoder + tables + heads == 1_961_388


@pytest.mark.parametrize(("sizes", "rate", "n"), LEARNING)
def test_overfits(sizes, rate, n):
    """Check 27: sixteen examples at a fifth of the size, four as printed."""
    torch.manual_seed(0)
    model = Imagine(ImagineConfig(vocab_size=len(tokenizer()), **sizes))
    knowledge = {"provider": "sample", "head": "last_cause", "options": {"minimum": 0.15}}
    batch = sample_batch("imagine", n, knowledge_of_types=knowledge)
    assert overfit(model, batch, 150, rate) is not None


def test_without_knowledge_the_types_are_one():
    """Check 9: all h = 0 gives the same for all types: the refiner on H_C with the first half of its entry."""
    model, batch = built()
    experience, causes = model.encoder.experience, torch.randn(3, 8, WIDTH)
    with torch.no_grad():
        zero = torch.zeros(3, WIDTH)
        parts = experience.refine(causes, batch["cause_mask"], zero, zero[:, None].expand(3, 3, WIDTH))
        refiner = experience.refiner
        whole = refiner(torch.nn.functional.pad(causes, (0, WIDTH)), batch["cause_mask"])
        refiner.projection.weight[:, WIDTH:] = 7.0  # read by nobody
        again = refiner(torch.nn.functional.pad(causes, (0, WIDTH)), batch["cause_mask"])
        pair = experience.mixers[0](torch.cat((whole, whole), -1))
    torch.testing.assert_close(again, whole)
    for part in parts:
        torch.testing.assert_close(part, pair)


def test_an_empty_provider_gives_equal_types():
    """Check 9, second half: CLS alone behind each type, no affect."""
    model, batch = built()
    ids = torch.zeros_like(batch["knowledge_ids"])
    ids[:, 1:, 0] = 2
    memory = encoded(model, {**batch, "knowledge_ids": ids, "knowledge_mask": ids.ne(0)}).last_hidden_state
    types = memory[..., : 3 * WIDTH].unflatten(-1, (3, WIDTH))
    torch.testing.assert_close(types[:, :, 0], types[:, :, 1])
    torch.testing.assert_close(types[:, :, 1], types[:, :, 2])
    affect, _ = model.encoder.experience.acquire(torch.randn(3, 4, 6, WIDTH), ids.ne(0))
    assert affect.abs().sum() == 0


@pytest.mark.parametrize(("place", "blocks"), [(1, [0]), (2, [1]), (3, [2]), (0, [0, 1, 2])])
def test_which_features_a_type_reaches(place, blocks):
    """Check 10: behaviour the first d features, affect the first 3 d."""
    model, batch = built()
    ids = batch["knowledge_ids"].clone()
    ids[:, place] = (ids[:, place] + 5).clamp_max(59) * batch["knowledge_mask"][:, place]
    changed = encoded(model, {**batch, "knowledge_ids": ids}).last_hidden_state
    differs = (changed - encoded(model, batch).last_hidden_state)[1:].abs().amax((0, 1)).unflatten(0, (4, WIDTH))
    assert differs.amax(1).gt(1e-6).nonzero().flatten().tolist() == blocks


def test_mechanisms_reach_the_last_features_alone():
    """Checks 10 and 11: the signal is the same at all positions; without weights it is 0 before it is widened."""
    model, batch = built()
    before = encoded(model, batch).last_hidden_state
    heads = model.encoder.reaction.heads
    with torch.no_grad():
        heads[0].weight.add_(torch.randn(2, WIDTH))
    after = encoded(model, batch).last_hidden_state
    torch.testing.assert_close(after[..., : 3 * WIDTH], before[..., : 3 * WIDTH])
    assert not torch.allclose(after[..., 3 * WIDTH :], before[..., 3 * WIDTH :])
    signal = after[..., 3 * WIDTH :]
    torch.testing.assert_close(signal, signal[:, :1].expand_as(signal))
    with torch.no_grad():
        for head in heads:
            head.weight.zero_()
            head.bias.zero_()
        logits, widened = model.encoder.reaction(torch.randn(5, WIDTH))
    assert logits.softmax(-1).eq(0.5).all()
    torch.testing.assert_close(widened, model.encoder.reaction.widen.bias.expand(5, WIDTH))


def test_mechanism_loss_is_the_sum_of_three_means():
    """Equation 8; replies without labels do not count."""
    model, batch = built()
    output = model(**batch)
    logits = encoded(model, batch).mechanism_logits
    known = batch["mechanism_labels"][:, 0] >= 0
    nll = -logits[known].log_softmax(-1).gather(-1, batch["mechanism_labels"][known][..., None])
    torch.testing.assert_close(output.losses["mechanisms"], nll.sum(1).mean())
    assert output.counts["mechanisms"] == known.sum() == 2


@pytest.mark.parametrize(("name", "blocks"), [("imagine", 4), ("imagine w/o cm", 3), ("imagine w/o know", 2)])
def test_shapes(name, blocks):
    """Check 14: the memory is as long as the causes and 4 d wide; the decoder reads an input for each word."""
    model, batch = built(name)
    encoding = encoded(model, batch)
    assert encoding.last_hidden_state.shape == (3, 8, blocks * WIDTH)
    assert model.decoder.layers[0].cross_attention.key.in_features == blocks * WIDTH
    ids = model.shift_right(batch["labels"])
    assert model.decoder_inputs(ids, encoding, 0).shape == (*batch["labels"].shape, WIDTH)


def test_the_emotion_takes_the_place_of_bos():
    """Check 15: changing it changes every word's scores; BOS itself is not read."""
    model, batch = built()
    encoding = encoded(model, batch)
    ids = model.shift_right(batch["labels"])
    with torch.no_grad():
        plain = model(encoder_outputs=encoding, decoder_input_ids=ids).logits
        other_bos = ids.clone()
        other_bos[:, 0] = 30
        torch.testing.assert_close(model(encoder_outputs=encoding, decoder_input_ids=other_bos).logits, plain)
        encoding.start = encoding.start + torch.randn(WIDTH)
        changed = model(encoder_outputs=encoding, decoder_input_ids=ids).logits
    assert (changed - plain).abs().amax(-1).gt(1e-5).all()


@pytest.mark.parametrize(("name", "differs"), [("imagine", False), ("imagine repo", True)])
def test_padding_of_the_batch(name, differs):
    """Checks 12 and 13."""
    case = CASES[name]
    model, batch = case.build().eval(), case.batch()
    with torch.no_grad():
        together, alone = model(**batch).logits[:1], model(**case.first_alone(batch)).logits
    assert ((together - alone).abs().max() > 1e-4) == differs


def test_positions_and_speakers_of_causes():
    """Check 20, second half: vectors are E_W + E_P (0, 1, ...) + E_S (listener or not)."""
    model, batch = built()
    encoder, seen = model.encoder, {}
    encoder.cause_stack.register_forward_pre_hook(lambda _, args: seen.update(vectors=args[0]))
    encoded(model, batch)
    expected = encoder.words(batch["cause_ids"]) + encoder.positions.weight[:8]
    expected = expected + encoder.speakers(batch["cause_role_ids"].eq(2).long())
    torch.testing.assert_close(seen["vectors"], expected * WIDTH**0.5)
    assert not encoder.cause_stack.has_timing


def test_unknown_choices_are_refused():
    for field in ("cm_signal", "emotion_input"):
        with pytest.raises(ValueError, match=f"{field} is 'x'; accepted"):
            ImagineConfig(**{field: "x"})


@pytest.mark.parametrize("signal", ["literal", "vector"])
def test_the_memory_is_that_of_the_equations(signal):
    """Equations 6 to 17 and check 14, written out for one example at a time, without padding."""
    case = CASES["imagine"]
    model = Imagine(ImagineConfig(**{**SIZES, **case.fields, "cm_signal": signal})).eval()
    batch, encoder, scale = case.batch(), model.encoder, WIDTH**0.5
    together = encoded(model, batch)
    own, reaction = encoder.experience, encoder.reaction
    with torch.no_grad():
        for i in range(3):
            n = int(batch["cause_mask"][i].sum())
            ids, roles = batch["cause_ids"][i, :n], batch["cause_role_ids"][i, :n]
            vectors = encoder.words(ids) + encoder.positions.weight[:n] + encoder.speakers.weight[(roles == 2).long()]
            causes = encoder.cause_stack(scale * vectors[None])  # (1, n, d)
            h = []
            for j in range(4):
                kept = batch["knowledge_ids"][i, j][batch["knowledge_mask"][i, j]]
                states = own.encoder(scale * encoder.words(kept)[None])[0] if len(kept) else torch.zeros(1, WIDTH)
                h.append(states.mean(0) if j == 0 else states[0])
            refined = []
            for vector in h:
                pair = torch.cat((causes, vector.expand(1, n, WIDTH)), dim=-1)
                assert pair.shape == (1, n, 2 * WIDTH)
                refined.append(own.refiner(pair))
            blocks = []
            for one in refined[1:]:
                x = torch.cat((one, refined[0]), dim=-1)
                gated = torch.sigmoid(x) * x
                assert one.shape == (1, n, WIDTH) and x.shape == (1, n, 2 * WIDTH)
                blocks.append((gated @ own.mixers[0].first.weight.T).relu() @ own.mixers[0].second.weight.T)
            first, total = causes[0, 0], 0
            for m in range(3):
                v = reaction.vectors(first)[m * WIDTH : (m + 1) * WIDTH] if signal == "vector" else first
                e = reaction.heads[m].weight @ v + reaction.heads[m].bias
                p = e.exp() / e.exp().sum()
                torch.testing.assert_close(together.mechanism_logits[i, m], e)
                total = total + (p[1] * v if signal == "vector" else p * e)
            total = total if signal == "vector" else reaction.widen(total)
            memory = torch.cat((*blocks, total.expand(1, n, WIDTH)), dim=-1)
            torch.testing.assert_close(together.last_hidden_state[i : i + 1, :n], memory, atol=1e-5, rtol=1e-4)


def test_emotion_and_start_are_those_of_the_equations():
    """Equations 1, 2 and 18: the emotion is read off CLS of the context and, raw, is the decoder's first input."""
    model, batch = built()
    encoder, together = model.encoder, encoded(model, batch)
    with torch.no_grad():
        for i in range(3):
            n = int(batch["attention_mask"][i].sum())
            vectors = encoder.words(batch["input_ids"][i, :n]) + encoder.positions.weight[:n]
            vectors = vectors + encoder.speakers.weight[(batch["role_ids"][i, :n] == 2).long()]
            cls = encoder.context_stack(WIDTH**0.5 * vectors[None])[0, 0]
            logits = encoder.emotion.weight @ cls + encoder.emotion.bias
            torch.testing.assert_close(together.emotion_logits[i], logits, atol=1e-5, rtol=1e-4)
            start = encoder.start.weight @ logits + encoder.start.bias
            torch.testing.assert_close(together.start[i], start, atol=1e-5, rtol=1e-4)
        ids = model.shift_right(batch["labels"])
        inputs = model.embed_reply(ids, together, 0)
        torch.testing.assert_close(inputs[:, 0], together.start)  # no factor on it
        torch.testing.assert_close(inputs[:, 1:], encoder.words(ids[:, 1:]) * WIDTH**0.5)


@pytest.mark.parametrize("name", ["imagine", "imagine_repo"])
def test_causes_are_the_labelled_turns_in_both_variants(name, tmp_path):
    """That the last turn is always a cause is the code of Gao et al., not that of CEM."""
    from empatheia_research.recipes.recipe import load_recipe
    from empatheia_research.training.tasks.respond import RespondTask

    recipe = load_recipe(f"recipes/imagine/{name}.yaml", "smoke")
    task = RespondTask(recipe, tmp_path)
    notes, n_other = task.causes(recipe.data, "train"), 0
    for item in task.encode(recipe.data, "train"):
        last = max(item.turn_ids)
        if labelled := {turn for turn in notes[item.dialogue_id].turns if turn <= last}:
            assert set(item.extra["cause_turns"]) == labelled
            n_other += last not in labelled
    assert n_other > 0


@pytest.mark.parametrize("start", [1.0, 0.1, 0.0])
def test_position_and_speaker_vectors_start_small_beside_the_words(start):  # or they drown the words
    torch.manual_seed(0)
    encoder = Imagine(ImagineConfig(vocab_size=1000, position_start=start)).encoder
    words = encoder.words.weight[6:].std().item()
    assert encoder.positions.weight.std().item() == pytest.approx(start * words, rel=0.1, abs=1e-9)
    assert encoder.speakers.weight.std().item() == pytest.approx(start * words, rel=0.2, abs=1e-9)


def test_positions_start_at_a_tenth_unless_told_otherwise():
    assert ImagineConfig(vocab_size=9).position_start == 0.1
    assert load_recipe("recipes/imagine/imagine_repo.yaml", "cpu").model["position_start"] == 1.0
    with pytest.raises(ValueError, match="position_start is -1"):
        ImagineConfig(vocab_size=9, position_start=-1)
