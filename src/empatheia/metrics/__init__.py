"""How well a system understands and answers: strings and numbers in, one ``Score`` with its signature out.

Nothing here sees a model or a tensor. Every metric is an accumulator (``update``, ``compute``, ``a + b``);
the name of a score says which of the definitions in use it follows, because papers of this field print the
same word for different numbers. Listing the names imports nothing.
"""

from __future__ import annotations

from empatheia.registry import Registry

METRICS = Registry(
    "metrics",
    {
        # perplexity.py: likelihood of the gold reply
        "ppl_token": "empatheia.metrics.perplexity:TokenPerplexity",
        "ppl_word": "empatheia.metrics.perplexity:WordPerplexity",
        "ppl_item": "empatheia.metrics.perplexity:ItemPerplexity",
        "ppl_item_mean": "empatheia.metrics.perplexity:MeanItemPerplexity",
        "ppl_batch_mean": "empatheia.metrics.perplexity:BatchPerplexity",
        "bits_per_character": "empatheia.metrics.perplexity:BitsPerCharacter",
        # bleu.py: overlap with the gold reply
        "bleu_corpus_1": "empatheia.metrics.bleu:bleu_corpus_1",
        "bleu_corpus_2": "empatheia.metrics.bleu:bleu_corpus_2",
        "bleu_corpus_3": "empatheia.metrics.bleu:bleu_corpus_3",
        "bleu_corpus_4": "empatheia.metrics.bleu:bleu_corpus_4",
        "bleu_corpus_4_lc": "empatheia.metrics.bleu:bleu_corpus_4_lc",
        "bleu_corpus_2_add1": "empatheia.metrics.bleu:bleu_corpus_2_add1",
        "bleu_nltk_1": "empatheia.metrics.bleu:bleu_nltk_1",
        "bleu_nltk_2": "empatheia.metrics.bleu:bleu_nltk_2",
        "bleu_nltk_3": "empatheia.metrics.bleu:bleu_nltk_3",
        "bleu_nltk_3_weighted": "empatheia.metrics.bleu:bleu_nltk_3_weighted",
        "bleu_nltk_4": "empatheia.metrics.bleu:bleu_nltk_4",
        "bleu_avg": "empatheia.metrics.bleu:AverageBLEU",
        "bleu_sent_none": "empatheia.metrics.bleu:bleu_sent_none",
        "bleu_sent_none_2": "empatheia.metrics.bleu:bleu_sent_none_2",
        "bleu_sent_add1_2": "empatheia.metrics.bleu:bleu_sent_add1_2",
        "bleu_sent_m7": "empatheia.metrics.bleu:bleu_sent_m7",
        "bleu_sacre": "empatheia.metrics.sacre:SacreBLEU",
        # rouge.py, sacre.py: overlap with the gold reply, other than BLEU
        "rouge_1": "empatheia.metrics.rouge:rouge_1",
        "rouge_2": "empatheia.metrics.rouge:rouge_2",
        "rouge_l": "empatheia.metrics.rouge:rouge_l",
        "chrf": "empatheia.metrics.sacre:chrf",
        "chrfpp": "empatheia.metrics.sacre:chrfpp",
        # parlai.py: overlap of normalised text with the gold reply
        "parlai_f1": "empatheia.metrics.parlai:ParlaiF1",
        "parlai_bleu_4": "empatheia.metrics.parlai:parlai_bleu_4",
        # bertscore.py, similarity.py: likeness of meaning, from vectors
        "bertscore_f": "empatheia.metrics.bertscore:bertscore_f",
        "bertscore_p": "empatheia.metrics.bertscore:bertscore_p",
        "bertscore_r": "empatheia.metrics.bertscore:bertscore_r",
        "bertscore_f_rescaled": "empatheia.metrics.bertscore:bertscore_f_rescaled",
        "bertscore_p_rescaled": "empatheia.metrics.bertscore:bertscore_p_rescaled",
        "bertscore_r_rescaled": "empatheia.metrics.bertscore:bertscore_r_rescaled",
        "sentence_similarity": "empatheia.metrics.similarity:SentenceSimilarity",
        # retrieval.py: the gold reply among candidates
        "p_at_1_100": "empatheia.metrics.retrieval:p_at_1_100",
        "p_at_3_100": "empatheia.metrics.retrieval:p_at_3_100",
        "p_at_10_100": "empatheia.metrics.retrieval:p_at_10_100",
        # coverage.py: words the reply should take up
        "coverage": "empatheia.metrics.coverage:Coverage",
        "coverage_near": "empatheia.metrics.coverage:NearCoverage",
        # listening.py: does the reply tell what it answers
        "listener_accuracy": "empatheia.metrics.listening:ListenerAccuracy",
        # distinct.py: variety of the replies
        "dist_corpus_1": "empatheia.metrics.distinct:dist_corpus_1",
        "dist_corpus_2": "empatheia.metrics.distinct:dist_corpus_2",
        "dist_corpus_concat_2": "empatheia.metrics.distinct:dist_corpus_concat_2",
        "dist_response_1": "empatheia.metrics.distinct:dist_response_1",
        "dist_response_2": "empatheia.metrics.distinct:dist_response_2",
        "dist_response_1_zero": "empatheia.metrics.distinct:dist_response_1_zero",
        "dist_response_concat_2_zero": "empatheia.metrics.distinct:dist_response_concat_2_zero",
        # repetition.py, length.py: degenerate replies, their size
        "repetition_4": "empatheia.metrics.repetition:repetition_4",
        "duplicate_replies": "empatheia.metrics.repetition:DuplicateReplies",
        "context_copies": "empatheia.metrics.repetition:ContextCopies",
        "vocabulary": "empatheia.metrics.repetition:Vocabulary",
        "length_words": "empatheia.metrics.length:length_words",
        "length_characters": "empatheia.metrics.length:length_characters",
        # classification.py: the emotion
        "accuracy": "empatheia.metrics.classification:Accuracy",
        "accuracy_top3": "empatheia.metrics.classification:accuracy_top3",
        "accuracy_top5": "empatheia.metrics.classification:accuracy_top5",
        "accuracy_batch_mean": "empatheia.metrics.classification:BatchMeanAccuracy",
        "f1_macro": "empatheia.metrics.classification:f1_macro",
        "f1_weighted": "empatheia.metrics.classification:f1_weighted",
        "precision_weighted": "empatheia.metrics.classification:precision_weighted",
        "recall_weighted": "empatheia.metrics.classification:recall_weighted",
        "calibration_error": "empatheia.metrics.classification:CalibrationError",
        "confusion": "empatheia.metrics.classification:Confusion",
        # distributions.py: emotions and intents of the replies, as shares
        "label_shares": "empatheia.metrics.distributions:LabelShares",
        "distribution_kl": "empatheia.metrics.distributions:distribution_kl",
        "distribution_js": "empatheia.metrics.distributions:distribution_js",
        "distribution_tv": "empatheia.metrics.distributions:distribution_tv",
        # causes.py: the cause of the emotion
        "entailment_f1_macro": "empatheia.metrics.causes:entailment_f1_macro",
        "entailment_f1_positive": "empatheia.metrics.causes:entailment_f1_positive",
        "entailment_f1_negative": "empatheia.metrics.causes:entailment_f1_negative",
        "cause_f1_turn": "empatheia.metrics.causes:cause_f1_turn",
        "cause_f1_word": "empatheia.metrics.causes:cause_f1_word",
        "cause_recall_top1": "empatheia.metrics.causes:cause_recall_top1",
        "cause_recall_top3": "empatheia.metrics.causes:cause_recall_top3",
        "cause_recall_top5": "empatheia.metrics.causes:cause_recall_top5",
        # spans.py: the cause as an extracted span
        "span_em_pos": "empatheia.metrics.spans:span_em_pos",
        "span_f1_pos": "empatheia.metrics.spans:span_f1_pos",
        "span_f1_neg": "empatheia.metrics.spans:span_f1_neg",
        "span_f1": "empatheia.metrics.spans:span_f1",
        "span_lcs_f1": "empatheia.metrics.spans:span_lcs_f1",
        "span_f1_pos_nested": "empatheia.metrics.spans:span_f1_pos_nested",
        "span_f1_nested": "empatheia.metrics.spans:span_f1_nested",
        # mechanisms.py: empathy shown by a reply, and where
        "mechanism_level": "empatheia.metrics.mechanisms:MechanismLevel",
        "rationale_f1": "empatheia.metrics.mechanisms:rationale_f1",
        "rationale_iou_f1": "empatheia.metrics.mechanisms:rationale_iou_f1",
        # agreement.py: the raters
        "fleiss_kappa": "empatheia.metrics.agreement:FleissKappa",
        "cohen_kappa": "empatheia.metrics.agreement:CohenKappa",
        "raw_agreement": "empatheia.metrics.agreement:RawAgreement",
    },
)

__all__ = ["METRICS"]
