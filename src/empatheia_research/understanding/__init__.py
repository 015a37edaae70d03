"""Models that say what a person feels, why, what else is likely true and how to react; names import nothing heavy."""

from empatheia.registry import Registry

UNDERSTANDERS = Registry(
    "understanders",
    {
        "affect_reader": "empatheia_research.understanding.affect.reader:AffectReader",
        "affect_states": "empatheia_research.understanding.affect.states:AffectStates",
        "cause_entailment": "empatheia_research.understanding.causes.entailment:CauseEntailment",
        "cause_spans": "empatheia_research.understanding.causes.spans:CauseSpans",
        "utterance_classifier": "empatheia_research.understanding.labels.utterance_classifier:UtteranceClassifier",
        "linear_classifier": "empatheia_research.understanding.labels.linear_classifier:LinearClassifier",
        "feature_classifier": "empatheia_research.understanding.labels.feature_classifier:FeatureClassifier",
        "emotion_estimator": "empatheia_research.understanding.words.estimator:EmotionEstimator",
        "mechanism_identifier": "empatheia_research.understanding.mechanisms.identifier:MechanismIdentifier",
        "reaction_predictor": "empatheia_research.understanding.labels.next_label:ReactionPredictor",
    },
)
"""Trainable models by the name recipes use (`system:`)."""

__all__ = ["UNDERSTANDERS"]
