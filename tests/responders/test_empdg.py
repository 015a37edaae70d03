"""EmpDG: the specification's checks 20 to 23, the discriminators, and who may see the next turn."""

from collections import Counter

import contract
import pytest
import torch

from empatheia.records.dialogue import Dialogue
from empatheia_research.corpora import sample
from empatheia_research.layers.copy import Copy, CopyDecoderLayer, compact, copy_mixture
from empatheia_research.responders import empdg
from empatheia_research.responders.empdg import EmpDG, EmpDGConfig
from empatheia_research.training.sources.feedback import FeedbackCollator, answered

CASE = contract.all_cases()["empdg"]
REPO = contract.all_cases()["empdg repo"]
ADVERSARIAL = ("adversarial_semantic", "adversarial_emotion")
CRITICS = ("critic_semantic", "critic_emotion")


def gradients(model, wanted):
    """Gradient of each parameter of one training step by some losses."""
    model.zero_grad()
    torch.manual_seed(4)
    losses = model.train()(**CASE.batch(), wanted_losses=wanted).losses
    sum(losses[name] for name in wanted).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


# -- data ----------------------------------------------------------------------------------------------------


def test_only_replies_followed_by_an_exchange_are_kept():
    """Check 20: what is left of a conversation is one example fewer; none of the last listener turns is a target."""
    n_kept = n_all = 0
    for dialogue in sample.load("train"):
        found = dialogue.examples()
        kept = answered(found, dialogue)
        assert [e.turn_index for e in kept] == [i for i in range(1, len(dialogue.turns) - 2, 2)]
        n_kept, n_all = n_kept + len(kept), n_all + len(found)
    assert 0 < n_kept < n_all


def test_of_the_released_contexts_2713_are_left():
    """Check 20, in its numbers: contexts of 1, 3, 5, 7 turns belong to conversations of 2, 4, 6, 8."""
    contexts = {1: 2542, 3: 2533, 5: 137, 7: 43}
    found, kept = Counter(), Counter()
    for length, n in contexts.items():
        n -= contexts.get(length + 2, 0)  # how many conversations go no further
        dialogue = Dialogue.of(*(f"turn {i}" for i in range(length + 1)))
        for counts, examples in ((found, dialogue.examples()), (kept, answered(dialogue.examples(), dialogue))):
            counts.update({len(example.context): 0 for example in examples})
            for example in examples:
                counts[len(example.context)] += n
    assert found == contexts
    assert kept == {1: 2533, 3: 137, 5: 43} and kept.total() == 2713  # each reply one exchange earlier


def test_the_subset_of_the_real_test_split_has_the_published_size():
    """Check 20: 2,713 of the released contexts; the files at hand differ from them by a few known neighbours."""
    from empatheia.errors import EmpatheiaError
    from empatheia_research.corpora import empathetic_dialogues

    try:
        dialogues = empathetic_dialogues.load("test").dialogues
    except EmpatheiaError:
        pytest.skip("EmpatheticDialogues is not here")
    n = sum(len(answered(d.examples(), d)) for d in dialogues)
    assert abs(n - (2533 + 137 + 43)) <= 6


def test_the_next_turn_joins_batches_only_in_the_collator_of_training():
    from empatheia_research.text.tokenizer import DialogueTokenizer

    dialogues = list(sample.load("train"))[:4]
    tokenizer = DialogueTokenizer.train_words(turn.text for d in dialogues for turn in d.turns)
    collate = FeedbackCollator(lambda items: {}, tokenizer, dialogues, torch.zeros(len(tokenizer), dtype=torch.bool))

    class Item:
        def __init__(self, dialogue, turn):
            self.dialogue_id, self.turn_index = dialogue.id, turn

    rows = collate([Item(dialogues[0], 1), Item(dialogues[1], len(dialogues[1].turns) - 1)])["feedback_ids"]
    assert tokenizer.decode(rows[0], raw=True) == tokenizer.decode(
        tokenizer.encode(dialogues[0].turns[2].text).ids, raw=True
    )
    assert rows[1].eq(-100).all()  # nobody spoke after the last turn


# -- copy ----------------------------------------------------------------------------------------------------


def test_copy_of_share_one_is_softmax_and_of_share_zero_is_the_source():
    """Check 21."""
    torch.manual_seed(0)
    logits, ids = torch.randn(2, 3, 9), torch.tensor([[1, 4, 4], [2, 7, 8]])
    weights = torch.rand(2, 3, 3).softmax(-1)
    torch.testing.assert_close(copy_mixture(logits, weights, torch.ones(2, 3, 1), ids).exp(), logits.softmax(-1))
    copied = copy_mixture(logits, weights, torch.zeros(2, 3, 1), ids).exp()
    torch.testing.assert_close(copied[0, :, 4], weights[0, :, 1] + weights[0, :, 2])
    outside = torch.ones(2, 9, dtype=torch.bool).scatter(1, ids, False)
    assert copied.transpose(1, 2)[outside].max() < 1e-12
    for share in (0.0, 0.3, 1.0):
        total = copy_mixture(logits, weights, torch.full((2, 3, 1), share), ids).exp().sum(-1)
        torch.testing.assert_close(total, torch.ones(2, 3))


def test_a_word_outside_the_vocabulary_is_copied_as_unk():
    """Check 21 where the vocabulary is of the training words alone: no mass is lost, UNK takes what is copied."""
    from empatheia_research.text.tokenizer import DialogueTokenizer

    tokenizer = DialogueTokenizer.train_words(["the puppy ran"])
    ids = torch.tensor([tokenizer.encode("the zyzzyva ran").ids])
    unk = tokenizer.encode("zyzzyva").ids[0]
    weights = torch.tensor([[[0.2, 0.5, 0.3]]])
    out = copy_mixture(torch.zeros(1, 1, len(tokenizer)), weights, torch.full((1, 1, 1), 0.4), ids).exp()
    assert out.sum().item() == pytest.approx(1.0, abs=1e-6)
    assert out[0, 0, unk].item() == pytest.approx(0.4 / len(tokenizer) + 0.6 * 0.5)


def test_the_released_copy_is_nearly_uniform_and_reaches_padding():
    weights = torch.tensor([[[0.98, 0.02, 0.0]]])
    copy = Copy(4, softens=True)
    torch.nn.init.constant_(copy.share.bias, -50.0)  # alpha = 0
    out = copy(torch.zeros(1, 1, 4), weights, torch.zeros(1, 1, 5), torch.tensor([[3, 4, 0]])).exp()[0, 0]
    assert out[0] > 0.2 and out[3] < 0.6


@pytest.mark.parametrize("averages_scores", [False, True])
def test_where_it_looked_is_a_mean_over_the_heads(averages_scores):
    """Of their weights; in the released code the softmax of their mean score."""
    torch.manual_seed(0)
    layer, states, memory = CopyDecoderLayer(8, 2, 8, 6, 0.0, 0, 1), torch.randn(1, 3, 8), torch.randn(1, 4, 8)
    torch.nn.init.normal_(layer.cross_attention.query.weight)
    layer.averages_scores = averages_scores
    keep = torch.tensor([[True, True, True, False]])
    with torch.no_grad():
        plain, looks = layer.look(states, memory, keep[:, None, None])
        queries = layer.cross_attention.query(layer.cross_norm(layer.attend_self(states)))[0]
        keys = layer.cross_attention.key(memory)[0, :3]
        one, other = (queries[:, h : h + 4] @ keys[:, h : h + 4].T / 2 for h in (0, 4))
        mean = ((one + other) / 2).softmax(-1) if averages_scores else (one.softmax(-1) + other.softmax(-1)) / 2
        torch.testing.assert_close(looks[0, :, :3], mean)
        assert looks[0, :, 3].abs().max() == 0.0
        torch.testing.assert_close(plain, layer(states, memory, keep[:, None, None]))  # what is read stays the same


@pytest.mark.parametrize("name", ["empdg", "kemp"])
def test_heads_scores_are_averaged_in_repo_alone(name):
    for case, expected in ((name, False), (f"{name} repo", True)):
        layers = contract.all_cases()[case].build().decoder.layers
        assert [layer.averages_scores for layer in layers] == [expected] * len(layers)


def test_compact_moves_what_is_kept_to_the_front():
    mask = torch.tensor([[True, False, True, False], [True, True, True, True]])
    new, ids = compact(mask, torch.tensor([[5, 6, 7, 8], [1, 2, 3, 4]]))
    assert new.tolist() == [[True, True, False, False], [True] * 4]
    assert ids[0, :2].tolist() == [5, 7] and ids[1].tolist() == [1, 2, 3, 4]


# -- memory --------------------------------------------------------------------------------------------------


def test_memory_is_context_and_emotion_words_with_cls_and_lab():
    """Check 23: words + emotion words + 2; without emotion words only LAB, still valid."""
    model = CASE.build().eval()
    batch = CASE.batch()
    with torch.no_grad():
        encoding = model.encode(**CASE.inputs(batch))
    words, felt = batch["attention_mask"].sum(-1) - 1, batch["emotion_word_mask"].sum(-1) - 1
    assert encoding.memory_mask.sum(-1).tolist() == (words + felt + 2).tolist()
    assert felt[1] == 0 and torch.isfinite(model(**batch).logits).all()


# -- adversarial ---------------------------------------------------------------------------------------------


def test_the_adversarial_term_reaches_the_generator_in_paper():
    """Check 22, `fixed`."""
    model = CASE.build()
    plain, joint = gradients(model, ("words", "emotion")), gradients(model, ("words", "emotion", *ADVERSARIAL))
    assert plain.keys() == joint.keys() and not any(name.startswith("discriminators") for name in joint)
    changed = {name for name in plain if not torch.allclose(plain[name], joint[name], atol=1e-7)}
    assert {"encoder.words.weight", "word_head.weight", "encoder.emotion_stack.projection.weight"} <= changed
    assert any(name.startswith("decoder.layers.0.cross_attention") for name in changed)


def test_the_adversarial_term_is_a_number_in_repo():
    """Check 22, `faithful`."""
    model = REPO.build()
    plain, joint = gradients(model, ("words", "emotion")), gradients(model, ("words", "emotion", *ADVERSARIAL))
    assert plain.keys() == joint.keys()
    for name in plain:
        torch.testing.assert_close(joint[name], plain[name], rtol=0, atol=0)


def test_the_drawn_gradient_points_where_the_expected_score_grows():
    """Oracle: replies of one word, all of them scored; the gradient of the exact mean of -D over what may be said."""
    model, n, vocabulary = CASE.build().train(), 512, 60
    model.config.n_sampled_words = 1
    one = {name: value if name == "emotion_vocabulary" else value[2:] for name, value in CASE.batch().items()}
    many = {k: v if k == "emotion_vocabulary" else v.expand(n, *v.shape[1:]) for k, v in one.items()}
    torch.manual_seed(0)
    model(**many, wanted_losses=("adversarial_semantic",)).losses["adversarial_semantic"].backward()
    drawn = model.word_head.bias.grad

    judge, encoding = model.discriminators["semantic"], model.encode(**CASE.inputs(one))
    begin = torch.full((1, 1), model.config.decoder_start_token_id)
    states = model.decode(model.decoder.open(model.embed_reply(begin, encoding, 0), 0), encoding, None, None)
    said = model.word_logits(states, encoding)[0, 0].exp()
    words, kept = torch.arange(vocabulary)[:, None], torch.ones(vocabulary, 1, dtype=torch.bool)
    heard = one["feedback_ids"], one["feedback_ids"].ne(-100)
    with torch.no_grad():
        feedback = judge.listen(*judge.embed(*heard, one["emotion_vocabulary"])).expand(vocabulary, -1)
        vectors, _ = judge.embed(words, kept, one["emotion_vocabulary"])
        context = encoding.last_hidden_state[:, 0].expand(vocabulary, -1)
        scores = judge.judge(judge.read(vectors), kept, context, feedback)
    (exact,) = torch.autograd.grad(-(said * scores).sum(), model.word_head.bias)
    assert torch.nn.functional.cosine_similarity(drawn, exact, dim=0) > 0.5


def test_the_critics_losses_leave_no_gradient_in_the_generator():
    found = gradients(CASE.build(), CRITICS)
    assert found and all(name.startswith("discriminators.") for name in found)


def test_convolutions_learn_in_paper_and_are_drawn_anew_in_repo():
    assert any("convolution.weight" in name for name in gradients(CASE.build(), CRITICS))
    model = REPO.build()
    assert not any("convolution" in name for name, _ in model.named_parameters())
    convolution = model.discriminators["semantic"].convolution
    states = torch.randn(1, 24, 5)
    assert not torch.equal(convolution(states), convolution(states))


def test_a_critic_learns_to_tell_gold_from_generated():
    """On the way every one of its parameters learns, shifts included, which at first cancel between the two replies."""
    model = CASE.build().train()
    optimizer = torch.optim.Adam(model.discriminators.parameters(), lr=2e-3)
    values, learnt = [], set()
    for _ in range(40):
        optimizer.zero_grad()
        loss = sum(model(**CASE.batch(8), wanted_losses=CRITICS).losses.values())
        loss.backward()
        learnt |= {name for name, p in model.discriminators.named_parameters() if p.grad.abs().sum() > 0}
        optimizer.step()
        values.append(loss.item())
    assert learnt == {name for name, _ in model.discriminators.named_parameters()}
    assert sum(values[-5:]) / 5 < sum(values[:5]) / 5 - 0.5


def test_the_penalty_is_zero_for_a_critic_of_slope_one():
    """Oracle: D(x) = mean over the width at one place of x has the gradient norm width^-0.5; scaled, 1."""
    judge = CASE.build().discriminators["semantic"]
    width = 24
    judge.judge = lambda states, mask, context, feedback: states[:, 0].sum(-1) * width**-0.5
    one, other = torch.randn(3, 4, width), torch.randn(3, 2, width)
    masks = torch.ones(3, 4, dtype=torch.bool), torch.ones(3, 2, dtype=torch.bool)
    assert judge.penalty(one, masks[0], other, masks[1], one[:, 0], one[:, 0]).item() < 1e-9
    judge.judge = lambda states, mask, context, feedback: 3.0 * states[:, 0].sum(-1) * width**-0.5
    assert judge.penalty(one, masks[0], other, masks[1], one[:, 0], one[:, 0]).item() == pytest.approx(4.0, rel=1e-4)


def test_a_critics_score_does_not_depend_on_padding_or_neighbours():
    judge = CASE.build().discriminators["emotion"].eval()
    vocabulary = torch.arange(60) % 3 == 0
    ids, mask = torch.tensor([[9, 7, 12, 30, 11], [6, 9, 8, 7, 0]]), torch.ones(2, 5, dtype=torch.bool)
    mask[1, 2:] = False

    def score(rows, cut):
        vectors, keep = judge.embed(ids[rows, :cut], mask[rows, :cut], vocabulary)
        context = torch.zeros(len(rows), 24)
        return judge.judge(judge.read(vectors), keep, context, judge.listen(vectors, keep))

    with torch.no_grad():
        torch.testing.assert_close(score([1], 2)[0], score([0, 1], 5)[1])
        assert judge.embed(ids, mask, vocabulary)[1].sum(-1).tolist() == [4, 3]  # LAB and the emotion words


def test_only_emotion_words_reach_the_emotion_critic():
    judge = CASE.build().discriminators["emotion"].eval()
    vocabulary = torch.arange(60) % 3 == 0
    mask = torch.ones(1, 3, dtype=torch.bool)
    with torch.no_grad():
        one = judge.read(judge.embed(torch.tensor([[9, 7, 12]]), mask, vocabulary)[0])[:, :3]
        other = judge.read(judge.embed(torch.tensor([[8, 9, 12]]), mask, vocabulary)[0])[:, :3]
    torch.testing.assert_close(one, other)


def test_drawn_replies_end_and_carry_a_gradient():
    model = CASE.build().train()
    encoding = model.encode(**CASE.inputs(CASE.batch()))
    ids, mask, soft = model.speak(encoding, has_gradient=True)
    assert ids.shape == mask.shape and ids.shape[1] <= model.config.n_sampled_words and mask[:, 0].all()
    assert torch.equal(soft.argmax(-1), ids) and soft.sum(-1).sub(1).abs().max() < 1e-5
    soft[0, -1, 7].backward()
    assert model.encoder.words.weight.grad.abs().sum() > 0
    assert model.speak(encoding, has_gradient=False)[2] is None


def test_drawn_words_without_noise_are_the_greedy_answer(monkeypatch):
    """Oracle: the library's greedy search."""
    monkeypatch.setattr(empdg, "gumbel_noise", torch.zeros_like)
    model = CASE.build().eval()
    known = CASE.inputs(CASE.batch())
    with torch.no_grad():
        ids, mask, _ = model.speak(model.encode(**known), has_gradient=False)
    greedy = model.generate(**known, max_new_tokens=model.config.n_sampled_words, do_sample=False)[:, 1:]
    for mine, keep, theirs in zip(ids, mask, greedy, strict=True):
        assert mine[keep].tolist() == theirs[: int(keep.sum())].tolist()


# -- who may see what ----------------------------------------------------------------------------------------


def test_the_next_turn_and_the_emotion_vocabulary_reach_nothing_that_answers():
    """The feedback is a gold label: changed, it changes neither scores, emotions, replies nor the reply's losses."""
    model = CASE.build().eval()
    batch = CASE.batch()
    other = {**batch, "feedback_ids": batch["feedback_ids"].flip(0, 1), "emotion_vocabulary": torch.zeros(60).bool()}
    with torch.no_grad():
        one, two = model(**batch), model(**other)
    assert torch.equal(one.logits, two.logits) and torch.equal(one.emotion_logits, two.emotion_logits)
    assert set(one.losses) == {"words", "emotion"}  # in evaluation mode the discriminators are silent
    assert not {"feedback_ids", "emotion_vocabulary", "labels"} & set(CASE.inputs(batch))
    model.train()
    torch.manual_seed(0)
    wanted = ("words", "emotion")
    assert set(model(**batch, wanted_losses=wanted).losses) == set(wanted)


def test_examples_without_a_next_turn_count_for_the_reply_alone():
    model = CASE.build().train()
    batch = CASE.batch()
    batch["feedback_ids"][1:] = -100
    counts = model(**batch).counts
    assert counts["words"] == batch["labels"].ne(-100).sum()
    assert counts["critic_semantic"] == counts["adversarial_emotion"] == 1
    batch["feedback_ids"][:] = -100
    losses = model(**batch).losses
    assert all(losses[name].item() == 0.0 for name in (*CRITICS, *ADVERSARIAL))
    sum(losses[name] for name in CRITICS).backward()


def test_settings_that_contradict_each_other_are_told():
    with pytest.raises(ValueError, match="unknown discriminators 'three'; accepted: both, semantic, none"):
        EmpDGConfig(discriminators="three")
    with pytest.raises(ValueError, match="without multi_resolution"):
        EmpDGConfig(multi_resolution=False)


def test_without_g_is_multi_trs_with_copies():
    model = contract.all_cases()["empdg w/o G"].build()
    assert isinstance(model, EmpDG) and model.encoder.emotion_stack is None and model.emotion_input is None
    assert list(model.discriminators) == ["semantic"]
