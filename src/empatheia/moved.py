"""Modules that stood elsewhere in version 0.1: their old names still open, with a warning, for one version."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_UNDERSTANDING = {
    "affect_reading": "affect.turns",
    "cause_entailment": "causes.entailment",
    "cause_evidence": "words.evidence",
    "cause_phrases": "words.phrases",
    "cause_spans": "causes.spans",
    "classification": "labels.classifier",
    "emotion_estimator": "words.estimator",
    "entailment_config": "causes.entailment_config",
    "entailment_items": "causes.entailment_items",
    "entailment_scores": "causes.entailment_scores",
    "estimator_pieces": "words.estimator_pieces",
    "feature_classifier": "labels.feature_classifier",
    "inferences.vectors": "vectors.texts",
    "linear_classifier": "labels.linear_classifier",
    "mechanism_config": "mechanisms.config",
    "mechanism_pairs": "mechanisms.pairs",
    "near_words": "vectors.words",
    "onnx_inference": "labels.onnx_inference",
    "perception": "labels.turns",
    "reaction": "labels.next_label",
    "reply_mechanisms": "mechanisms.replies",
    "span_answers": "causes.span_answers",
    "span_config": "causes.span_config",
    "span_items": "causes.span_items",
    "token_vectors": "vectors.tokens",
    "utterance_classifier": "labels.utterance_classifier",
    "vector_cache": "vectors.cache",
    "word_baselines": "words.baselines",
    "word_causes": "words.turns",
    "word_questions": "words.questions",
    "word_sets": "words.gold",
}
_TRAINING = {
    "annotating": "corpus_labels",
    "anticipating": "tasks.anticipate",
    "classifying": "tasks.classify",
    "entailing": "tasks.entail",
    "estimating": "tasks.estimate",
    "extracting": "tasks.extract",
    "feedback": "tasks.feedback",
    "focus_contexts": "tasks.focus_contexts",
    "focus_replies": "tasks.focus_replies",
    "focus_speakers": "tasks.focus_speakers",
    "focusing": "tasks.focus",
    "listening": "tasks.listen",
    "mechanisms": "tasks.mechanisms",
    "packaging": "release",
    "perceiving": "tasks.perceive",
    "prompting": "tasks.prompt",
    "reply_judging": "tasks.reply_judges",
    "responding": "tasks.respond",
    "retrieving": "tasks.retrieve",
    "span_scores": "tasks.span_scores",
    "starting": "initial_weights",
    "teaching": "teacher_labels",
    "word_chart": "tasks.word_chart",
}
MODULES = {f"empatheia.understanding.{old}": f"empatheia.understanding.{new}" for old, new in _UNDERSTANDING.items()}
MODULES |= {f"empatheia.training.{old}": f"empatheia.training.{new}" for old, new in _TRAINING.items()}
"""Old name of each module to where it is now; whatever became a folder of the same name calls :func:`moved_name`."""


class MovedModules(MetaPathFinder, Loader):
    """Finds modules by their old names; asked last, so that it costs other imports nothing."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Of a module in :data:`MODULES`, else nothing."""
        return ModuleSpec(fullname, self) if fullname in MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of today, which is one and the same object under both names."""
        new = MODULES[spec.name]
        warnings.warn(f"{spec.name} is now {new}", DeprecationWarning, stacklevel=2)
        module = import_module(new)
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module back its own specification, which the import of the old name has replaced."""
        if module.__spec__ is not None:
            module.__spec__ = self._specs.pop(module.__spec__.name, module.__spec__)


def open_old_names() -> None:
    """Lets old module names be imported; called once, by the package itself."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())


def moved_name(package: str, name: str, module: str) -> object:
    """What a package answers for a name that it held when it was a single module.

    Args:
        package: Asked for the name.
        name: Looked for.
        module: Where the single module's names are now.

    Raises:
        AttributeError: It is not there either.
    """
    if name.startswith("__"):
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(module), name)
    except AttributeError:
        raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
    warnings.warn(f"{package}.{name} is now in {module}", DeprecationWarning, stacklevel=3)
    return value
