"""What every registered responder must hold: learns, caches, batches, saves, and never reads a gold label to answer."""

from pathlib import Path

import pytest
import torch
from contract import all_cases

import fresh
from empatheia_research.responders import RESPONDERS

CASES = all_cases()


def test_every_system_has_a_case():
    other = {"rashkin_retrieval", "language_model"}  # they generate nothing from a trained decoder of ours
    assert set(RESPONDERS.names()) - other <= {case.system for case in CASES.values()}


@pytest.mark.parametrize("name", CASES)
def test_every_parameter_gets_a_gradient(name):
    case = CASES[name]
    model = case.build()
    model(**case.batch()).loss.backward()
    missing = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert [n for n in missing if not any(part in n for part in case.unused)] == []


@pytest.mark.parametrize("name", CASES)
def test_loss_falls_on_eight_examples(name):
    case = CASES[name]
    model = case.build()
    if case.freeze is not None:
        model.get_submodule(case.freeze).requires_grad_(False)
    batch = case.batch(8)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)

    def loss_of():
        losses = model(**batch).losses
        return sum(losses[part] for part in case.losses or losses)

    model.train()
    first = loss_of().item()
    for _ in range(case.steps):
        optimizer.zero_grad()
        loss = loss_of()
        if loss.item() < 0.7 * first:
            return
        loss.backward()
        optimizer.step()
    pytest.fail(f"the loss fell from {first:.4f} to {loss.item():.4f} only")


@pytest.mark.parametrize("name", CASES)
def test_batch_equals_singles_and_padding_content_does_not_matter(name):
    case = CASES[name]
    if case.sees_padding:
        pytest.skip("the released code lets convolutions see padding")
    model = case.build_steady()
    batch = case.batch()
    with torch.no_grad():
        together = model(**batch)
        noisy = {**batch, "input_ids": batch["input_ids"].masked_fill(~batch["attention_mask"], 17)}
        torch.testing.assert_close(model(**noisy).logits, together.logits, atol=1e-5, rtol=1e-4)
        alone = model(**case.first_alone(batch))
    torch.testing.assert_close(alone.logits[0], together.logits[0], atol=1e-5, rtol=1e-4)
    if together.emotion_logits is not None:
        torch.testing.assert_close(alone.emotion_logits[0], together.emotion_logits[0], atol=1e-5, rtol=1e-4)
    if together.cause_logits is not None:
        torch.testing.assert_close(alone.cause_logits[0], together.cause_logits[0, :6], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("beams", [1, 4])
@pytest.mark.parametrize("name", CASES)
def test_cached_equals_uncached(name, beams):
    case = CASES[name]
    model = case.build().eval()
    settings = {"max_new_tokens": 10, "num_beams": beams, "do_sample": False}
    torch.manual_seed(1)
    cached = model.generate(**case.inputs(case.batch()), **settings)
    torch.manual_seed(1)
    uncached = model.generate(**case.inputs(case.batch()), **settings, use_cache=False)
    assert cached.tolist() == uncached.tolist()


@pytest.mark.parametrize("name", CASES)
def test_greedy_generation_takes_the_teacher_forced_argmax(name):
    case = CASES[name]
    model = case.build_steady()
    known = case.inputs(case.batch())
    ids = model.generate(**known, max_new_tokens=8, do_sample=False)
    with torch.no_grad():
        logits = model(**known, decoder_input_ids=ids[:, :-1]).logits
    for row, scores in zip(ids, logits.argmax(-1), strict=True):
        n = [*row[1:].tolist(), 5].index(5)  # up to the first end mark
        assert scores[:n].tolist() == row[1 : n + 1].tolist()


@pytest.mark.parametrize("name", CASES)
def test_gold_labels_do_not_influence_word_scores(name):
    case = CASES[name]
    model = case.build_steady()
    batch = case.batch()
    other = dict(batch)
    if "emotion_labels" in batch:
        other["emotion_labels"] = batch["emotion_labels"].flip(0) + 7
    if "cause_labels" in batch:
        other["cause_labels"] = 1 - batch["cause_labels"].clamp(0)
    with torch.no_grad():
        torch.testing.assert_close(model(**other).logits, model(**batch).logits)


@pytest.mark.parametrize("name", CASES)
def test_losses_of_parts_add_up_by_their_counts(name):
    """So accumulated micro-batches learn what one batch does."""
    case = CASES[name]
    if case.sees_padding:
        pytest.skip("the released code lets padding take part, and how much there is depends on the batch")
    model, batch = case.build_steady(), case.batch(4)

    def rows(part):
        return {key: value[part] if value.shape[:1] == (4,) else value for key, value in batch.items()}

    with torch.no_grad():
        whole, parts = model(**batch), [model(**rows(part)) for part in (slice(0, 1), slice(1, 4))]
    assert whole.losses
    for loss, value in whole.losses.items():
        counts = [part.counts[loss] for part in parts]
        assert sum(counts) == whole.counts[loss] > 0, loss
        added = sum(part.losses[loss] * n for part, n in zip(parts, counts, strict=True)) / sum(counts)
        torch.testing.assert_close(added, value, atol=1e-5, rtol=1e-4, msg=loss)


@pytest.mark.parametrize("name", CASES)
def test_the_reply_does_not_influence_earlier_words(name):
    case = CASES[name]
    model = case.build_steady()
    batch = case.batch()
    changed = batch["labels"].clone()
    changed[:, 3] = 11
    with torch.no_grad():
        plain, other = model(**batch).logits, model(**{**batch, "labels": changed}).logits
    torch.testing.assert_close(other[:, :4], plain[:, :4])


def test_saved_and_loaded_in_a_new_process_is_bit_equal(tmp_path):
    """All cases in one process: it spends its time on imports."""
    for i, case in enumerate(CASES.values()):
        model, batch = case.build_steady(), case.batch()
        with torch.no_grad():
            expected = model(**batch).logits
        model.save_pretrained(tmp_path / f"m{i}")
        torch.save({"batch": batch, "logits": expected}, tmp_path / f"{i}.pt")
    code = f"""
import sys
from pathlib import Path
import torch
sys.path.insert(0, {str(Path(__file__).parent)!r})
from contract import all_cases
from empatheia_research.responders import RESPONDERS
folder = Path({str(tmp_path)!r})
for i, (name, case) in enumerate(all_cases().items()):
    model = RESPONDERS.get(case.system).from_pretrained(folder / f"m{{i}}").eval()
    if case.steady is not None:
        case.steady(model)
    saved = torch.load(folder / f"{{i}}.pt")
    with torch.no_grad():
        if not torch.equal(model(**saved["batch"]).logits, saved["logits"]):
            print(name)
"""
    done = fresh.run(["-c", code], check=True)
    assert done.stdout.split("\n")[:-1] == []


@pytest.mark.parametrize("name", CASES)
def test_parameters_missing_from_a_checkpoint_are_initialised(name, tmp_path):
    from safetensors.torch import load_file, save_file

    model = CASES[name].build()
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    removed = [k for k in weights if k.startswith("decoder.")] + ["encoder.words.weight"]
    save_file({k: v for k, v in weights.items() if k not in removed}, file, metadata={"format": "pt"})
    loaded = type(model).from_pretrained(tmp_path)
    for part, parameter in loaded.named_parameters():
        assert torch.isfinite(parameter).all() and parameter.abs().max() < 1e3, part
