"""Records of earlier versions, whose scores had one name each ("SET: METHOD: METRIC"), read as rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from empatheia.metrics.rows import LEVEL, Measured, ScoreRow, TestRow
from empatheia.metrics.score import Score
from empatheia.metrics.significance import ComparisonRecord
from empatheia.taxonomy import MECHANISMS

_FOLD = re.compile(r"fold(\d) (pairs|spans), (threshold|rule) (.*)")
_PREFIXES: Mapping[str, str] = {
    **{"gold label": "told", "all": "turns", "listener": "turns", "no turn labels": "turns"},
    **{"blocks-ordered": "protocol", "inline": "protocol", "emotion": "of", "text": "of"},
    **dict.fromkeys(MECHANISMS, "mechanism"),
}
"""What stands before a metric, and the label it is."""
_SETS = re.compile(r".* six|everyday.*|edos|empathetic_dialogues")
_PAIRS = {"entailment_f1_positive": "positive_f1", "entailment_f1_negative": "negative_f1"}
_PAIRS |= {"entailment_f1_macro": "macro_f1"}
_SPANS = {f"span_{name}": name for name in ("em_pos", "f1_pos", "f1_pos_nested", "f1_neg", "f1", "f1_nested")}


def measured_by_names(metrics: Mapping[str, object]) -> Measured:
    """Named scores as rows; nothing is lost, and the rows keep the order of the names.

    Args:
        metrics: Of a run record: name to ``Score.to_dict()``, to a comparison, or to anything else.
    """
    found = _Found()
    whose = "system" if "systems" in metrics else "variant"
    is_grid = isinstance(metrics.get("systems"), Mapping) or isinstance(metrics.get("variants"), Mapping)
    for name, value in metrics.items():
        if is_score(value):
            found.rows.append(_row(name, value, whose if is_grid else ""))
        elif (fold := _FOLD.fullmatch(name)) and isinstance(value, Mapping):
            labels = {"fold": fold.group(1), "of": fold.group(2), fold.group(3): fold.group(4)}
            found.rows.extend(_fold_rows(labels, value))
            found.facts[name] = {key: own for key, own in value.items() if key != "scores"}
        elif isinstance(value, Mapping):
            _add_group(found, name, value, whose)
        else:
            found.facts[name] = value
    return Measured(found.rows, found.tests, found.facts)


@dataclass
class _Found:
    """What has been read of a record."""

    rows: list[ScoreRow] = field(default_factory=list)
    tests: list[TestRow] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


def _add_group(found: _Found, name: str, value: Mapping[str, Any], whose: str) -> None:
    """Adds tests between systems, one comparison, several scores under one name, or facts."""
    if name == "tests":
        found.tests.extend(_system_test(told, result, whose) for told, result in value.items())
    elif _is_comparison(value) and name.count(": ") == 2:
        place, pair, metric = name.split(": ")
        ours, _, other = pair.partition(" - ")
        found.tests.append(TestRow(metric, {"set": place, "method": ours}, other, value))
    elif any(map(is_score, value.values())):
        found.rows.extend(_row(f"{name}: {key}", own, "") for key, own in value.items() if is_score(own))
        found.facts[name] = {key: own for key, own in value.items() if not is_score(own)}
    else:
        found.facts[name] = value


def _is_comparison(value: Mapping[str, object]) -> TypeGuard[ComparisonRecord]:
    return "difference" in value


def is_score(value: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a value is a score and not a fact."""
    return isinstance(value, Mapping) and "value" in value and "unit" in value


def score_of(metric: str, value: Mapping[str, object]) -> Score:
    """A score as it was written; what an old record left out is empty."""
    whole = {"n": 0, "higher_is_better": None, **value, "name": metric}
    return Score.from_dict(whole | {"n": whole["n"] or 0, "signature": whole.get("signature") or ""})


def _row(name: str, value: Mapping[str, object], whose: str) -> ScoreRow:
    prefix, _, metric = name.rpartition(": ")
    labels: dict[str, str] = {}
    if whose and prefix:
        labels[whose] = prefix
        if metric in MECHANISMS:
            labels["mechanism"], metric = metric, LEVEL
    elif prefix.count(": ") == 1:
        labels["set"], labels["method"] = prefix.split(": ")
    elif prefix:
        labels[_label(prefix)] = prefix
    return ScoreRow(metric, score_of(metric, value), labels)


def _label(prefix: str) -> str:
    if prefix.startswith("majority ("):
        return "method"
    return "set" if _SETS.fullmatch(prefix) else _PREFIXES.get(prefix, "candidates")


def _fold_rows(labels: Mapping[str, str], value: Mapping[str, Any]) -> Iterator[ScoreRow]:
    """Records made before intervals were kept have plain numbers in percent, under other names."""
    scores = dict(value.get("scores", {}))
    n = int(value.get("n_positive", 0) + value.get("n_negative", 0))
    for metric, plain in (_PAIRS if labels["of"] == "pairs" else _SPANS).items():
        if metric not in scores and plain in value:
            scores[metric] = {"value": value[plain], "unit": "percent", "n": n, "higher_is_better": True}
    for metric, score in scores.items():
        yield ScoreRow(metric, score_of(metric, score), labels)


def _system_test(name: str, result: ComparisonRecord, whose: str) -> TestRow:
    metric, _, rest = name.partition(": ")
    ours, _, other = rest.rpartition(" against ")
    return TestRow(metric, {whose: ours}, other, result)
