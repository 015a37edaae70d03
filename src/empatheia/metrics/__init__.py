"""How well a system understands and answers: strings and numbers in, one ``Score`` with its signature out.

Nothing here sees a model or a tensor. Every metric is an accumulator (``update``, ``compute``, ``a + b``);
the name of a score says which of the definitions in use it follows, because papers of this field print the
same word for different numbers. Listing the names imports nothing.
"""

from __future__ import annotations

from empatheia.registry import Registry

_NAMES = (
    # likelihood of the gold reply
    (
        "perplexity",
        "ppl_token:TokenPerplexity ppl_word:WordPerplexity ppl_item:ItemPerplexity ppl_item_mean:MeanItemPerplexity "
        "ppl_batch_mean:BatchPerplexity bits_per_character:BitsPerCharacter",
    ),
    # overlap with the gold reply
    (
        "bleu",
        "bleu_corpus_1 bleu_corpus_2 bleu_corpus_3 bleu_corpus_4 bleu_corpus_4_lc bleu_corpus_2_add1 bleu_nltk_1 "
        "bleu_nltk_2 bleu_nltk_3 bleu_nltk_3_weighted bleu_nltk_4 bleu_avg:AverageBLEU bleu_sent_none "
        "bleu_sent_none_2 bleu_sent_add1_2 bleu_sent_m7",
    ),
    ("sacre", "bleu_sacre:SacreBLEU"),
    # rouge.py, sacre.py: overlap with the gold reply, other than BLEU
    ("rouge", "rouge_1 rouge_2 rouge_l"),
    ("sacre", "chrf chrfpp"),
    # overlap of normalised text with the gold reply
    ("parlai", "parlai_f1:ParlaiF1 parlai_bleu_4"),
    # bertscore.py, similarity.py: likeness of meaning, from vectors
    ("bertscore", "bertscore_f bertscore_p bertscore_r bertscore_f_rescaled bertscore_p_rescaled bertscore_r_rescaled"),
    ("similarity", "sentence_similarity:SentenceSimilarity"),
    # the gold reply among candidates
    ("retrieval", "p_at_1_100 p_at_3_100 p_at_10_100"),
    # words the reply should take up
    ("coverage", "coverage:Coverage coverage_near:NearCoverage"),
    # does the reply tell what it answers
    ("listening", "listener_accuracy:ListenerAccuracy"),
    # variety of the replies
    (
        "distinct",
        "dist_corpus_1 dist_corpus_2 dist_corpus_concat_2 dist_response_1 dist_response_2 dist_response_1_zero "
        "dist_response_concat_2_zero",
    ),
    # repetition.py, length.py: degenerate replies, their size
    (
        "repetition",
        "repetition_4 duplicate_replies:DuplicateReplies context_copies:ContextCopies vocabulary:Vocabulary",
    ),
    ("length", "length_words length_characters"),
    # the emotion
    (
        "classification",
        "accuracy:Accuracy accuracy_top3 accuracy_top5 accuracy_batch_mean:BatchMeanAccuracy f1_macro f1_weighted "
        "precision_weighted recall_weighted calibration_error:CalibrationError confusion:Confusion",
    ),
    # emotions and intents of the replies, as shares
    ("distributions", "label_shares:LabelShares distribution_kl distribution_js distribution_tv"),
    # the cause of the emotion
    (
        "causes",
        "entailment_f1_macro entailment_f1_positive entailment_f1_negative cause_f1_turn cause_f1_word "
        "cause_recall_top1 cause_recall_top3 cause_recall_top5",
    ),
    # the cause as an extracted span
    ("spans", "span_em_pos span_f1_pos span_f1_neg span_f1 span_lcs_f1 span_f1_pos_nested span_f1_nested"),
    # empathy shown by a reply, and where
    ("mechanisms", "mechanism_level:MechanismLevel rationale_f1 rationale_iou_f1"),
    # the raters
    ("agreement", "fleiss_kappa:FleissKappa cohen_kappa:CohenKappa raw_agreement:RawAgreement"),
)
"""Modules and their metrics, ``name`` or ``name:attribute``."""

METRICS = Registry(
    "metrics",
    {
        name: f"empatheia.metrics.{module}:{attribute or name}"
        for module, names in _NAMES
        for name, _, attribute in (told.partition(":") for told in names.split())
    },
)
