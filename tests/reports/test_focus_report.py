"""The table and the picture of focus, from a self-made record."""

import json

import numpy as np
import pytest

from empatheia.errors import DataError
from empatheia_research.reports.focus_chart import focus_chart, is_focus_record, read_focus_record
from empatheia_research.reports.record_tables import tables
from empatheia_research.reports.results_page import PAGE, keep

SYSTEMS = {"S0": {}} | {
    f"{kind}, alpha {alpha}, beta 0.9": {"kind": kind, "alpha": float(alpha), "beta": 0.9}
    for kind in ("random", "gee")
    for alpha in (2, 6)
}


def score(name: str, value: float, unit: str) -> dict:
    ends = [value - 1, value + 1]
    return {"name": name, "value": value, "unit": unit, "n": 50, "interval": ends, "signature": "a:b", "parts": {}}


def focus_record() -> dict:
    metrics: dict = {"systems": SYSTEMS, "decoding": {"plain_replies_per_second": 9.0}}
    for i, name in enumerate(SYSTEMS):
        metrics[f"{name}: coverage"] = score("coverage", 5.0 + i, "percent")
        metrics[f"{name}: ppl_token"] = score("ppl_token", 40.0 + 5 * i, "perplexity")
    metrics["gold: coverage"] = score("coverage", 8.0, "percent")
    metrics["trivial: why: coverage"] = score("coverage", 0.0, "percent")
    p_values = {"S0": 0.03, "random, alpha 6, beta 0.9": 0.2}
    metrics["tests"] = {
        f"coverage: gee, alpha 6, beta 0.9 against {other}": {
            "metric": "coverage", "difference": 4.0, "p_value": p, "n": 50, "n_resamples": 99, "method": "permutation",
        }
        for other, p in p_values.items()
    }  # fmt: skip
    facts = {"recipe": "kim2021/focus_soft", "size": "cpu", "seed": 1, "note": "", "training_seconds": 0.0}
    return {**facts, "stages": {}, "parameters": 10, "environment": {}, "data": {}, "metrics": metrics}


def test_a_row_for_each_system_with_the_p_values_of_its_coverage():
    (table,) = tables([focus_record()])
    assert table.key == "focus" and [row.labels["system"] for row in table.rows] == [*SYSTEMS, "gold", "trivial: why"]
    last = next(row for row in table.rows if row.labels["system"] == "gee, alpha 6, beta 0.9")
    assert (last.values["p_plain"].value, last.values["p_random"].value) == (0.03, 0.2)
    assert "method:permutation" in last.values["p_plain"].signature
    assert not {"p_plain", "p_random"} & set(table.rows[0].values) and "ppl_token" not in table.rows[-1].values


def test_a_line_for_each_kind_from_the_unfocused_system_through_its_alphas():
    pytest.importorskip("matplotlib")
    record = focus_record()
    (axes,) = focus_chart({"soft": record}).axes
    lines = {line.get_label(): np.asarray(line.get_xydata()).tolist() for line in axes.lines}
    assert {"random, beta 0.9", "gee, beta 0.9", "S0", "gold replies"} <= set(lines)
    assert lines["gee, beta 0.9"] == [[40, 5], [55, 8], [60, 9]]
    assert [text.get_text() for text in axes.texts] == ["2", "6", "2", "6"]
    with pytest.raises(DataError, match="no focused system with both ppl_token and listener_accuracy"):
        focus_chart({"soft": record}, y="listener_accuracy")
    assert len([axes for axes in focus_chart(dict.fromkeys("abc", record)).axes if axes.get_visible()]) == 3


def test_what_is_no_run_of_focus_is_told(tmp_path):
    (tmp_path / "metrics.json").write_text(json.dumps({"metrics": {"ppl_word": score("ppl_word", 3, "perplexity")}}))
    with pytest.raises(DataError, match="not a measured run of task focus"):
        read_focus_record(tmp_path)
    with pytest.raises(DataError, match="is not a finished run"):
        read_focus_record(tmp_path / "none")
    assert not is_focus_record({"metrics": {}})
    pytest.importorskip("matplotlib")
    with pytest.raises(DataError, match="no run to draw"):
        focus_chart({})


def test_a_kept_record_has_its_picture_and_the_command_draws_it(tmp_path, cli):
    pytest.importorskip("matplotlib")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.json").write_text(json.dumps(focus_record()))
    kept = keep(tmp_path / "run", tmp_path / "results")
    assert kept.with_name("cpu-seed1.focus.png").stat().st_size > 1000
    page = (tmp_path / "results" / PAGE).read_text(encoding="utf-8")
    assert "focus_soft/cpu-seed1.focus.png" in page and "gee, alpha 6, beta 0.9" in page
    done = cli("plot", "focus", str(kept), str(tmp_path / "run"), "--out", str(tmp_path / "x.svg"))
    assert done.code == 0 and (tmp_path / "x.svg").is_file()
    assert cli("plot", "focus", str(kept), "--x", "nothing", "--out", str(tmp_path / "y.svg")).code != 0
