"""Trains the shipped classifier, chooses its limits, and measures every line of the lexicon.

``python -m empatheia_research.care.training`` writes ``data/classifier.safetensors`` and the measured columns of
``data/lexicon.tsv`` anew, always the same. Texts with a risk and their near misses are ``data/texts_train.jsonl``,
written for this project; the everyday corpus of the package (CC BY 4.0) and EmpatheticDialogues (CC BY-NC 4.0) are more
of the harmless class, so the weights carry the licence of the latter. Needs scipy; using the weights does not.

The limits are chosen on texts that were left out of training (five parts in turn): the lowest at which lexicon and
classifier together flag no more than a wanted share of harmless talk.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from empatheia.care.classifier import CRISIS, HEADS, N_WIDE, NARROW, RISK, WEIGHTS, LinearClassifier
from empatheia.care.detector import Detector, TextRead
from empatheia.care.features import BUCKETS, FEATURES
from empatheia.care.labelled import TRAINING_TEXTS, LabelledText, read_texts, with_typos
from empatheia.care.lexicon import COLUMNS, LEXICON, Lexicon
from empatheia.errors import MissingDependencyError
from empatheia.reading import read_json, read_text
from empatheia.records.danger import KINDS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

PARTS = 5
RUN = 4
"""Texts by one voice that stand beside each other, and often are alike, stay in the same part."""
STRENGTH = 6.0
"""Inverse of the penalty on weights."""
STEPS = 80
TURN_WEIGHTS = {"speaker": 0.6, "listener": 0.3}
"""Of the everyday corpus, in training."""
EVERYDAY, TOLD = "everyday/", "told/"
"""Beginnings of the voices of harmless corpora: the everyday corpus, EmpatheticDialogues."""
TOLD_TURNS = 12_000
FALSE_ALARMS = 0.02
"""Of everyday turns, and of those of EmpatheticDialogues: the limit of a risk is the lowest, so finds the most, that
keeps below this share of both."""
FALSE_CRISES = 0.003
"""The same for the limit of a crisis, which replaces the reply."""
SEED = 7


def everyday_texts() -> list[LabelledText]:
    """All turns of the everyday corpus, as harmless; conversations of the reviewed list are left out.

    Listeners' turns count less: they are there because they are short and ordinary.
    """
    from empatheia_research.corpora.everyday import items

    left_out = set(read_json(TRAINING_TEXTS.parent / "everyday_left_out.json"))
    return [
        LabelledText(turn.text, "none", "unclear", (), EVERYDAY + item.writer, TURN_WEIGHTS[turn.role])
        for item in items("train")
        if item.dialogue.id not in left_out
        for turn in item.dialogue.turns
    ]


def told_texts(reader: Detector) -> list[LabelledText]:
    """Speaker turns of EmpatheticDialogues' training part, drawn once, as harmless.

    Turns in which a line of the lexicon flags are left out: read one by one, most of them do tell of danger.

    Args:
        reader: Finds these lines.

    Raises:
        MissingResourceError: The corpus is not on this machine.
    """
    from empatheia_research.corpora.empathetic_dialogues import load

    turns = [
        LabelledText(turn.text, "none", "unclear", (), f"{TOLD}{dialogue.id}", TURN_WEIGHTS["speaker"])
        for dialogue in load("train").dialogues
        for turn in dialogue.turns
        if turn.role == "speaker"
    ]
    random.Random(SEED).shuffle(turns)
    return [text for text in turns[:TOLD_TURNS] if reader.by_lines(reader.read(text.text)).level == "none"]


def targets(texts: Sequence[LabelledText]) -> np.ndarray:
    """Labels by head; -1 where a text says nothing of a head. Shape: ``(len(texts), len(HEADS))``."""
    out = np.zeros((len(texts), len(HEADS)), dtype=np.int8)
    for row, text in enumerate(texts):
        is_risk = text.level != "none"
        for column, head in enumerate(HEADS):
            if head == RISK:
                out[row, column] = is_risk
            elif head == CRISIS:
                out[row, column] = text.level == "crisis"
            elif head in KINDS:
                out[row, column] = head in text.kinds if is_risk else 0
            else:
                is_told = is_risk or text.about in ("fiction", "past")
                out[row, column] = text.about == head if is_told else -1 if head != "fiction" else 0
    return out


def matrix(reads: Sequence[TextRead]) -> csr_matrix:
    """Features of texts as a sparse matrix. Shape: ``(len(reads), FEATURES)``."""
    from scipy.sparse import csr_matrix

    rows = [read.row() for read in reads]
    ends = np.cumsum([0, *(len(buckets) for buckets, _ in rows)])
    buckets = np.concatenate([buckets for buckets, _ in rows])
    values = np.concatenate([values for _, values in rows])
    return csr_matrix((values, buckets, ends), shape=(len(rows), FEATURES))


def folded(features: csr_matrix) -> csr_matrix:
    """Words, letters and lexicon hits alone, in half as many buckets. Shape: ``(n, NARROW)``."""
    return (features[:, :NARROW] + features[:, NARROW:BUCKETS]).tocsr()


def fit(features: csr_matrix, labels: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logistic regressions of several heads on the same features, by L-BFGS, all at once.

    Args:
        features: Sparse. Shape: ``(n, width)``.
        labels: 0 or 1; -1 where a text says nothing of a head. Shape: ``(n, heads)``.
        weights: Of the texts. Shape: ``(n,)``.

    Returns:
        Weights and biases. Shapes: ``(heads, width)``, ``(heads,)``.

    Raises:
        MissingDependencyError: scipy is not installed.
    """
    try:
        from scipy.optimize import minimize
    except ImportError as error:
        raise MissingDependencyError(
            "training the detector needs scipy: pip install 'empatheia[topics]'. Using it does not."
        ) from error
    shape: Any = features.shape  # scipy does not say that every matrix has one
    n_heads, width = labels.shape[1], shape[1]
    truth = np.maximum(labels, 0).astype(np.float32)
    counts = (labels >= 0).astype(np.float32) * weights[:, None]
    turned = features.T.tocsr()

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        rows = flat.reshape(width + 1, n_heads).astype(np.float32)
        scores = features @ rows[:-1] + rows[-1]
        value = (counts * (np.logaddexp(0.0, scores) - truth * scores)).sum(dtype=np.float64)
        slope = counts * (1.0 / (1.0 + np.exp(-np.clip(scores, -30, 30))) - truth)
        gradient = np.concatenate([turned @ slope + rows[:-1] / STRENGTH, slope.sum(axis=0, keepdims=True)])
        penalty = float((rows[:-1].astype(np.float64) ** 2).sum()) / (2.0 * STRENGTH)
        return float(value) + penalty, gradient.astype(np.float64).ravel()

    begin = np.zeros((width + 1) * n_heads)
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "maxcor": 12})
    rows = found.x.reshape(width + 1, n_heads).astype(np.float32)
    return np.ascontiguousarray(rows[:-1].T), rows[-1]


def parts_of(texts: Sequence[LabelledText]) -> np.ndarray:
    """The part every text belongs to, 0 to ``PARTS - 1``: runs of four texts by the same voice stay together.

    Returns:
        Shape: ``(len(texts),)``.
    """
    seen: dict[str, int] = {}
    out = []
    for text in texts:
        place = seen.get(text.voice, 0)
        seen[text.voice] = place + 1
        out.append(crc32(f"{text.voice}/{place // RUN}".encode()) % PARTS)
    return np.asarray(out)


def limit_for(chances: np.ndarray, is_harmless: np.ndarray, share: float) -> float:
    """The lowest limit, to four places, that at most this share of harmless texts reach.

    Args:
        chances: Probabilities. Shape: ``(n,)``.
        is_harmless: Labels. Shape: ``(n,)``.
        share: Wanted.

    >>> limit_for(np.array([0.1, 0.2, 0.3, 0.4]), np.array([True] * 4), 0.25)
    0.3001
    """
    highest = np.sort(chances[is_harmless.astype(bool)])[::-1]
    return min(1.0, float(np.floor(highest[int(share * len(highest))] * 10_000) + 1) / 10_000)


def held_out(texts: Sequence[LabelledText], features: csr_matrix, noisy: csr_matrix, is_own: np.ndarray) -> np.ndarray:
    """Probabilities of a risk and of a crisis by weights that never saw the voice.

    Args:
        texts: All.
        features: Of all.
        noisy: Of those of our own, with slips.
        is_own: Which these are. Shape: ``(len(texts),)``.

    Returns:
        Shape: ``(len(texts), 2)``.
    """
    labels = targets(texts)[:, :N_WIDE]
    weights = np.asarray([text.weight for text in texts], dtype=np.float32)
    parts = parts_of(texts)
    out = np.zeros((len(texts), N_WIDE), dtype=np.float32)
    for part in range(PARTS):
        kept = parts != part
        own = kept & is_own
        rows, bias = fit(
            stacked(features[kept], noisy[kept[is_own]]),
            np.concatenate([labels[kept], labels[own]]),
            np.concatenate([weights[kept], 0.5 * weights[own]]),
        )
        out[~kept] = 1.0 / (1.0 + np.exp(-(features[~kept] @ rows.T + bias)))
    return out


def stacked(one: csr_matrix, other: csr_matrix) -> csr_matrix:
    """Rows of one sparse matrix above those of another."""
    from scipy.sparse import vstack

    rows: Any = vstack([one, other])
    return rows.tocsr()


def train(texts: Sequence[LabelledText], lexicon: Lexicon) -> tuple[LinearClassifier, np.ndarray]:
    """A classifier with its limits, and the probabilities for voices left out.

    Args:
        texts: Own ones and everyday ones.
        lexicon: Whose hits are features.
    """
    reader = Detector(lexicon, LinearClassifier.blank(), encoder=False)
    reads = [reader.read(text.text) for text in texts]
    own = np.asarray([not text.voice.startswith((EVERYDAY, TOLD)) for text in texts])
    ours = [text.text for text, is_ours in zip(texts, own, strict=True) if is_ours]
    noisy = matrix([reader.read(with_typos(text, 0.12, SEED)) for text in ours])
    features, labels = matrix(reads), targets(texts)
    chances = held_out(texts, features, noisy, own)
    by_lines = [reader.by_lines(read).level for read in reads]
    is_risk = labels[:, 0] == 1
    parts = _harmless(texts, own, is_risk)
    found = np.maximum(chances[:, 0], [float(level != "none") for level in by_lines])
    grave = np.maximum(chances[:, 1], [float(level == "crisis") for level in by_lines])
    limits = _limits(found, grave, parts)
    weights = np.asarray([text.weight for text in texts], dtype=np.float32)
    wide, wide_bias = fit(
        stacked(features, noisy),
        np.concatenate([labels, labels[own]])[:, :N_WIDE],
        np.concatenate([weights, 0.5 * weights[own]]),
    )
    narrow, narrow_bias = fit(folded(features[own]), labels[own, N_WIDE:], weights[own])
    flagged = found >= limits[RISK]
    notes: dict[str, object] = {
        "texts": int(own.sum()),
        "risks": int(is_risk.sum()),
        "validation_recall": round(float(flagged[is_risk].mean()), 4),
        "validation_recall_of_lines": round(float((found[is_risk] == 1.0).mean()), 4),
        **_false_alarms(flagged, flagged & (grave >= limits[CRISIS]), parts),
        "validation_recall_by_kind": _recall_by_kind(texts, flagged, is_risk),
    }
    bias = np.concatenate([wide_bias, narrow_bias])
    return LinearClassifier(wide, narrow, bias, limits, notes), chances


def _harmless(texts: Sequence[LabelledText], own: np.ndarray, is_risk: np.ndarray) -> dict[str, np.ndarray]:
    """Which texts belong to each harmless part, by its name; no empty part. Shape of each: ``(len(texts),)``."""
    speakers = np.asarray([text.weight == TURN_WEIGHTS["speaker"] for text in texts])
    parts = {
        "everyday": speakers & np.asarray([text.voice.startswith(EVERYDAY) for text in texts]),
        "told": speakers & np.asarray([text.voice.startswith(TOLD) for text in texts]),
        "near_misses": own & ~is_risk,
    }
    return {name: part for name, part in parts.items() if part.any()}


def _limits(found: np.ndarray, grave: np.ndarray, parts: dict[str, np.ndarray]) -> dict[str, float]:
    """The limits of a risk and of a crisis, by talk that is no near miss where there is any."""
    judges = [part for name, part in parts.items() if name != "near_misses"] or [parts["near_misses"]]
    return {
        RISK: max(limit_for(found, part, FALSE_ALARMS) for part in judges),
        CRISIS: max(limit_for(grave, part, FALSE_CRISES) for part in judges),
    }


def _false_alarms(flagged: np.ndarray, crises: np.ndarray, parts: dict[str, np.ndarray]) -> dict[str, object]:
    """Size, false alarms and false crises of every harmless part, for the notes."""
    notes: dict[str, object] = {}
    for name, part in parts.items():
        notes[name] = int(part.sum())
        notes["validation_false_alarms_" + name] = round(float(flagged[part].mean()), 4)
        notes["validation_false_crises_" + name] = round(float(crises[part].mean()), 4)
    return notes


def _recall_by_kind(texts: Sequence[LabelledText], flagged: np.ndarray, is_risk: np.ndarray) -> dict[str, str]:
    """Of every kind of danger how many risks are flagged: ``83/122``."""
    by_kind = {kind: [i for i, text in enumerate(texts) if is_risk[i] and kind in text.kinds] for kind in KINDS}
    return {kind: f"{int(flagged[places].sum())}/{len(places)}" for kind, places in by_kind.items()}


def measure_lines(texts: Iterable[LabelledText], lexicon: Lexicon) -> dict[int, tuple[int, int, int]]:
    """Of every line: risks it finds, risks it alone finds, harmless texts it hits (of masks: those with a risk).

    Args:
        texts: Own ones and everyday ones.
        lexicon: Whose lines.

    Returns:
        By number of the line.
    """
    from empatheia.care.normalising import tokens_of

    counts = {line.number: [0, 0, 0] for line in lexicon.lines}
    for text in texts:
        hits = lexicon.hits(tokens_of(text.text))
        is_risk = text.level != "none"
        masks = {hit.line.number for hit in hits if hit.line.force == "mask"}
        finds = {hit.line.number for hit in hits if hit.line.force != "mask"}
        for number in finds:
            counts[number][0 if is_risk else 2] += 1
        if is_risk and len(finds) == 1:
            counts[next(iter(finds))][1] += 1
        for number in masks:
            counts[number][2 if is_risk else 0] += 1
            counts[number][1] += not is_risk and len(masks) == 1
    return {number: (found, alone, false) for number, (found, alone, false) in counts.items()}


def write_measures(measures: dict[int, tuple[int, int, int]], path: Path = LEXICON) -> None:
    """The measured columns of the lexicon file, anew."""
    rows = read_text(path).splitlines()
    for number, values in measures.items():
        cells = rows[number - 1].split("\t")[: len(COLUMNS) - 3]
        rows[number - 1] = "\t".join([*cells, *map(str, values)])
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def all_texts() -> tuple[list[LabelledText], Lexicon]:
    """Own, everyday and told texts, and the shipped lexicon."""
    lexicon = Lexicon.read()
    reader = Detector(lexicon, LinearClassifier.blank(), encoder=False)
    return [*read_texts(), *everyday_texts(), *told_texts(reader)], lexicon


def main() -> None:
    """Trains, measures, writes, and prints what was reached."""
    texts, lexicon = all_texts()
    write_measures(measure_lines(texts, lexicon))
    classifier, _ = train(texts, lexicon)
    classifier.save(WEIGHTS)
    sys.stdout.write(json.dumps({"thresholds": classifier.thresholds, **classifier.notes}, indent=1) + "\n")


if __name__ == "__main__":
    main()
