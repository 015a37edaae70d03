"""What each task's `data` block accepts; the field descriptions are the documentation.

:data:`DATA_CONFIGS` names the block of every task of :data:`empatheia_research.training.tasks.TASKS`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import (
    Field,
)

from empatheia.settings import Sparse, Strict


class TaskData(Strict):
    """What every task's `data` block accepts."""

    corpus: str = Field("empathetic_dialogues", description="Where the items come from; `sample` = self-written.")
    train_limit: int | None = Field(None, description="First so many training dialogues.", ge=1)
    valid_limit: int | None = Field(None, description="First so many validation dialogues.", ge=1)
    test_limit: int | None = Field(None, description="First so many test dialogues.", ge=1)


class DataConfig(TaskData, Sparse):
    """Task `respond`: which conversations, which labels."""

    unwritten = {"answered": ((), []), "max_turns": (None,), "truncate": (None,)}

    roles: tuple[Literal["speaker", "listener"], ...] = Field(("listener",), description="Whose turns are targets.")
    situations: bool = Field(False, description="Also learn the emotion from the situation texts (no reply).")
    extra: tuple[str, ...] = Field((), description="Dialogue corpora added to the training replies.")
    pool: tuple[str, ...] = Field((), description="Dialogue corpora of `corpus: pooled`, split 80/10/10.")
    curated: str | None = Field(
        None, description="Folder of a run of `empatheia curate` for `corpus: curated`; its parts go into `pool`."
    )
    causes: Literal["none", "annotator", "recec", "lexicon", "sample"] = Field(
        "none", description="Origin of the cause labels."
    )
    causes_path: str | None = Field(None, description="Annotation file (`annotator`) or lexicon (`lexicon`).")
    causes_scope: Literal["prefix", "dialogue"] = Field(
        "prefix", description="Labels for each prefix's own last turn, or once per conversation (released labels)."
    )
    spans: Literal["none", "reccon"] = Field("none", description="Add word-level cause labels from RECCON's spans.")
    emotion_teacher: str | None = Field(None, description="File of a teacher's emotion distributions.")
    mechanisms: str | None = Field(
        None, description="File of the replies' mechanism levels (`empatheia annotate --what mechanisms`), or `sample`."
    )
    target: Literal["reply", "none"] = Field("reply", description="Whether the reply is part of an example.")
    max_source: int = Field(256, description="Pieces of context kept; the oldest turns go first.", ge=8)
    max_target: int = Field(128, description="Pieces of reply kept in training.", ge=4)
    max_turns: int | None = Field(None, description="Turns of context kept at most, the newest; None = all.", ge=1)
    truncate: Literal["oldest", "newest"] | None = Field(
        None, description="What a long context loses: its oldest turns (None), or all behind `max_source` pieces."
    )
    overlong: Literal["trim", "skip"] = Field(
        "trim", description="What does not fit into `max_source` or `max_target`: shorten, or do not learn from it."
    )
    test_turns: Literal["all", "one"] = Field(
        "all", description="Measure all replies, or one a conversation drawn at random, at most 2,000 (MEED2)."
    )
    separators: bool | Literal["double"] = Field(
        True, description="Close each turn of the context by SEP; `double` = also open each but the first by one."
    )
    side_inputs: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Settings of what the system reads beside the context, by name."
    )
    answered: tuple[Literal["train", "valid", "test"], ...] = Field(
        (), description="Splits of which only replies that the speaker answered, and the listener again, count (EmpDG)."
    )
    fold: int = Field(1, description="RECCON fold (annotator).", ge=1, le=3)
    emotion_labels: Literal["verbatim", "reccon"] = Field(
        "reccon", description="Emotion words the annotator reads for EmpatheticDialogues."
    )


class ClassifyData(TaskData, Sparse):
    """Task `classify`: an emotion or intent of one text."""

    unwritten = {"path": (None,)}

    labels: Literal[32, 41, "file", "turns"] = Field(
        32,
        description="32 emotions, 41 emotions and intents (empathetic_intents), those of `labelled_texts`, or the"
        " corpus's own labels of its turns (`turns`), whatever they are.",
    )
    path: str | None = Field(
        None,
        description="`labelled_texts`: file of label<TAB>text lines, folder of 20 Newsgroups, or `sample`;"
        " `labelled_turns`: file of conversations whose turns have a `label`.",
    )
    text: Literal["situation", "context", "utterance"] = Field(
        "situation",
        description="What is read: the situation, the turns before a reply, or a single speaker turn; of labels of"
        " turns the turns before the labelled one, or it alone.",
    )
    cut: bool = Field(False, description="ED-cut: leave out texts in which the word of their own label occurs.")
    variant: Literal["clean", "repo"] = Field(
        "clean", description="empathetic_intents: lower-cased throughout, or as released (letter case tells classes)."
    )
    overlaps: Literal["keep", "drop"] = Field(
        "keep", description="empathetic_intents: keep or drop texts that repeat or are also in a later split."
    )
    learn: tuple[Literal["train", "valid"], ...] = Field(("train",), min_length=1, description="Splits learnt from.")
    choose: Literal["valid", "test"] = Field("valid", description="Split whose loss selects the weights.")
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="`balanced` weighs each class by the inverse of its training count."
    )
    features: str | None = Field(None, description="File of a frozen encoder's features (feature_classifier).")


class EntailData(TaskData):
    """Task `entail`: causal turns (RECCON)."""

    corpus: Literal["reccon", "sample"] = Field(  # pyright: ignore[reportIncompatibleVariableOverride] (it is frozen)
        "reccon", description="RECCON, or the self-written sample."
    )
    fold: int = Field(1, description="RECCON fold it is trained on.", ge=1, le=3)
    test_folds: tuple[Literal[1, 2, 3], ...] = Field((1, 2, 3), description="Folds it is tested on.", min_length=1)


class ExtractData(EntailData):
    """Task `extract`: causal spans (RECCON)."""

    tune: Literal["balanced", "f1"] = Field(
        "balanced", description="What the null threshold makes best on valid: mean of F1_pos and F1_neg, or F1."
    )


class EstimateData(TaskData):
    """Task `estimate`: the generative emotion estimator, and what its words are compared with."""

    texts: tuple[Literal["situation", "opening", "speaker"], ...] = Field(
        ("situation",), min_length=1, description="Learnt texts: situations (published), first or all speaker turns."
    )
    emocause: str | None = Field(None, description="EmoCause: archive, folder or file; `sample` = self-written.")
    classifier: str | None = Field(None, description="Emotion classifier asked for its attention and gradients.")
    lexicons: tuple[str, ...] = Field((), description="Affect lexicons: `warriner`, `vader`, or paths.")
    random_seed: int = Field(15, description="Of the random words.")
    word_splits: tuple[Literal["train", "valid", "test"], ...] = Field(
        (), description="RECCON splits also measured together; no method learns from any of them."
    )


class MechanismsData(TaskData):
    """Task `mechanisms`: EPITOME's communication mechanisms; `corpus` is `epitome` or `sample`."""

    corpus: str = Field("epitome", description="`epitome` (Reddit part) or `sample` (self-written).")


class PerceiveData(TaskData, Sparse):
    """Task `perceive`: emotion, side and cause words from several corpora; the everyday corpus is always among them."""

    unwritten = {"reccon": ("history",)}

    corpus: Literal["everyday", "sample"] = Field(  # pyright: ignore[reportIncompatibleVariableOverride] (it is frozen)
        "everyday", description="`sample` = a few self-written items."
    )
    copies: int = Field(
        4, ge=0, description="Of every everyday item; all but the first are typed carelessly. 0 = none is learnt."
    )
    accepted_share: float = Field(
        0.3, ge=0, lt=1, description="Share of the target that goes to an item's other acceptable labels."
    )
    label_smoothing: float = Field(0.05, ge=0, lt=1, description="Share spread over all emotions.")
    empathetic: tuple[Literal["situation", "context"], ...] = Field(
        ("situation", "context"), description="What is learnt from EmpatheticDialogues; a context = one a conversation."
    )
    empathetic_limit: int | None = Field(None, ge=1, description="First so many of its training conversations.")
    extra: tuple[Literal["edos", "emobank", "reccon"], ...] = Field(
        ("edos", "emobank", "reccon"), description="Corpora learnt from besides: emotions, sides, cause words."
    )
    extra_limit: int | None = Field(None, ge=1, description="First so many items of each.")
    reccon: Literal["history", "spans"] = Field(
        "history",
        description="RECCON's spans among all the speaker's words, or as whole spans inside causal turns alone.",
    )
    teachers: tuple[str, ...] = Field(
        (), description="Runs or model folders whose mean perception is learnt besides; {size}, {seed} are the run's."
    )
    teacher_share: float = Field(0.7, ge=0, le=1, description="Share of the target that is the teachers'.")


class PerceiveStatesData(PerceiveData):
    """Task `perceive_states`: the same by states of a frozen language model, mixed with another perception."""

    empathetic: tuple[Literal["situation", "context"], ...] = Field(
        ("context",), description="What is learnt from EmpatheticDialogues; a context = one a conversation."
    )
    extra: tuple[Literal["edos", "emobank", "reccon"], ...] = Field(
        ("edos",), description="Corpora learnt from besides; RECCON's have no emotion of the 32."
    )
    beside: str | None = Field(
        "listener", description="Folder or name of the perception it is mixed with; None = it stays alone."
    )


class AnticipateData(TaskData):
    """Task `anticipate`: emotion or intent of the reply that should come next."""

    labels: str = Field(
        "released", description="Labels of the turns: `released` (EmpatheticIntents), or a turn label file."
    )
    roles: tuple[Literal["speaker", "listener"], ...] = Field(
        ("speaker", "listener"), min_length=1, description="Whose turns are targets; both as published."
    )
    overlong: Literal["trim", "skip"] = Field(
        "trim", description="Contexts over `max_pieces`: drop the oldest turns, or leave the example out (published)."
    )
    pieces: str | None = Field(
        None, description="Folder or name whose tokenizer an encoder from scratch uses; None = pieces of its own."
    )


class PromptData(TaskData, Sparse):
    """Task `prompt`: a language model that answers from a prompt, as it is or tuned."""

    unwritten = {
        **dict.fromkeys(("train_limit", "valid_limit", "test_limit"), (None,)),
        "extra": ((),),
        "items": ("replies",),
        "hidden": (0.0,),
    }

    roles: tuple[Literal["speaker", "listener"], ...] = Field(("listener",), description="Whose turns are targets.")
    extra: tuple[str, ...] = Field((), description="Corpora whose replies are learnt, too; measured is `corpus` alone.")
    items: Literal["replies", "conversations"] = Field(
        "replies", description="What is learnt at once: a reply with its context, or all replies of a conversation."
    )
    shown: tuple[Literal["emotion", "side", "causes", "intent"], ...] = Field(
        (), description="What the model is shown of our analysis of the context; nothing = zero-shot."
    )
    hidden: float = Field(0.0, ge=0, lt=1, description="Share of the training turns of which nothing is shown.")
    analyst: str = Field("gao2021-small", description="Folder or name of the listener that finds emotion and causes.")
    reaction: str = Field("reaction", description="Folder or name of the model that finds the reply's intent.")
    labeller: str = Field("intent", description="Folder or name of the turn labels that model reads.")


class RetrieveData(TaskData):
    """Task `retrieve`: the reply among candidates (Rashkin et al. 2018)."""

    roles: tuple[Literal["speaker", "listener"], ...] = Field(
        ("speaker", "listener"), min_length=1, description="Whose turns are learnt; both as released."
    )
    extra: tuple[str, ...] = Field((), description="Dialogue corpora whose replies are learnt, too.")
    only_extra: bool = Field(False, description="Learn from `extra` alone (a stage before the own corpus).")
    candidates: tuple[str, ...] = Field(
        ("own",), min_length=1, description="Sources of candidates in order: `own` corpus, dialogue corpora."
    )
    max_candidate_words: int = Field(20, ge=1, description="Longest candidate, in words.")
    prepend: dict[str, Any] = Field(
        default_factory=dict, description="Labels in front of contexts and replies: `classifier`, `k`, `order`."
    )
    external: dict[str, Any] = Field(
        default_factory=dict, description="Second encoder of an ensemble: `encoder`, `path`, `reads`, `cache`."
    )


DistractorKind = Literal["random", "gee", "repo", "masked"]


class JudgedData(TaskData):
    """What tasks `focus` and `listen` share: contexts, their target words, and models that judge replies to them.

    Folders may hold `{size}` and `{seed}`, which are the run's.
    """

    split: Literal["valid", "test"] = Field("test", description="Whose contexts are answered.")
    contexts: int | None = Field(None, description="So many of them, drawn at random; None = all.", ge=1)
    contexts_seed: int = Field(0, description="Of this draw.")
    estimator: str | None = Field(
        None, description="Emotion estimator that finds the target words and writes `gee` and `repo` distractors."
    )
    words: Literal["estimator", "rake"] = Field(
        "estimator", description="What finds the target words; `rake` (keywords) needs no model."
    )
    masked: str | None = Field(None, description="Masked language model of `masked` distractors.")
    distractors_seed: int = Field(0, description="Of the distractors a speaker is focused with.")
    worlds: int = Field(3, ge=2, description="The true context and its distractors.")
    listener: str | None = Field(
        None, description="Another responder, asked which context a reply answers; None = not measured."
    )
    fresh: DistractorKind | None = Field(
        None,
        description="Kind of distractors it tells the context from; None = the speaker's, else `random`.",
    )
    fresh_seed: int = Field(1, description="Of these; another one than `distractors_seed`.")
    mechanisms: str | None = Field(None, description="Model of EPITOME's mechanisms; None = not measured.")
    near: str | None = Field(None, description="Encoder of `coverage_near`, e.g. `minilm`; None = not measured.")

    @property
    def kinds(self) -> tuple[DistractorKind, ...]:
        """Kinds of distractors that speakers are focused with and the task makes."""
        return ()

    @property
    def fresh_kind(self) -> DistractorKind:
        """Kind of distractors that the listener is asked about."""
        return self.fresh or (self.kinds[-1] if self.kinds else "random")


class FocusData(JudgedData):
    """Task `focus`: a responder as it is and focused (Kim et al. 2021), on the same contexts; nothing learns."""

    distractors: tuple[DistractorKind, ...] = Field(
        ("random", "gee"), min_length=1, description="Kinds, each measured; `repo` = `gee` as released."
    )
    grid: tuple[tuple[float, float], ...] = Field(
        ((6.0, 0.9),), min_length=1, description="Pairs of alpha and beta, both above 0."
    )
    prior: Literal["L0", "uniform", "L1"] = Field("L0", description="How the imagined listener's belief goes on.")

    @property
    def kinds(self) -> tuple[DistractorKind, ...]:
        """Those that are measured."""
        return self.distractors


class ListenData(JudgedData):
    """Task `listen`: a listener of five steps whole and without each of its parts, on the same contexts."""

    variants: dict[str, dict[str, Any]] = Field(
        {},
        description="Name to the settings that differ from `model`, e.g. `{no focus: {express: {focus: {use: off}}}}`.",
    )
    baseline: str | None = Field(None, description="Variant with which each other one is compared, too.")


class RankData(TaskData):
    """Task `rank`: weights of the ranking, chosen on pairs of replies of the everyday corpus."""

    terms: tuple[str, ...] = Field(
        ("coverage", "side", "contradiction", "diversity", "length"),
        min_length=1,
        description="Terms whose weights are chosen; the others weigh 0 while that is done.",
    )
    scorer: str | None = Field(
        None, description="Folder or name of the model whose probabilities `likelihood` and `information` are."
    )
    decay: float = Field(0.001, ge=0, description="Of the squared weights.")


class WholeData(TaskData):
    """Task `whole`: the default listener, what it perceives and what it says."""

    contexts: int = Field(
        1000, ge=0, description="So many contexts of EmpatheticDialogues, drawn at random, are answered, too."
    )
    outside: tuple[str, ...] = Field(
        ("empathetic_dialogues", "meld", "emorynlp", "dailydialog", "reccon"),
        description="Corpora, besides the everyday one, on which the perception is measured.",
    )


DATA_CONFIGS: dict[str, type[TaskData]] = {
    "respond": DataConfig,
    "entail": EntailData,
    "classify": ClassifyData,
    "position": EntailData,
    "extract": ExtractData,
    "estimate": EstimateData,
    "mechanisms": MechanismsData,
    "anticipate": AnticipateData,
    "retrieve": RetrieveData,
    "prompt": PromptData,
    "focus": FocusData,
    "listen": ListenData,
    "rank": RankData,
    "whole": WholeData,
    "perceive": PerceiveData,
    "perceive_states": PerceiveStatesData,
}
"""What `data` accepts, by task."""
WITHOUT_TRAINING = frozenset({"prompt", "focus", "listen", "rank", "position", "whole"})
"""Tasks whose recipes may have no stage: the model is measured as it is."""
