import json
from pathlib import Path

from empatheia_research.reports.results_page import PAGE, draw_curves, keep, results_page

ROOT = Path(__file__).resolve().parents[2]


def test_the_kept_page_is_the_one_the_records_give():
    assert (ROOT / "results" / PAGE).read_text(encoding="utf-8") == results_page(ROOT / "results")


def test_the_published_row_stands_once_under_the_run_it_belongs_to():
    lines = results_page(ROOT / "results").splitlines()
    (place,) = [i for i, line in enumerate(lines) if "meed2/emotion_intent/cpu-seed1024" in line and "| 61.77" in line]
    assert "*65.88*" in lines[place + 1] and lines[place + 1].startswith("| *meed2")
    assert sum("*DeepMoji chain-thaw, ED*" in line or "DeepMoji chain-thaw, ED*" in line for line in lines) == 1


def test_every_row_has_as_many_cells_as_its_heading():
    n_cells = None
    for line in results_page(ROOT / "results").splitlines():
        if not line.startswith("|"):
            n_cells = None
            continue
        n_cells = n_cells or line.count("|")
        assert line.count("|") == n_cells, line


def test_a_kept_run_has_a_picture_of_its_curves(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (record,) = (ROOT / "results").glob("meed2/response_labels/*-seed1024.json")
    (run / "metrics.json").write_text(record.read_text(encoding="utf-8"))
    rows = [{"stage": "label", "step": i, "loss": 2 / i} for i in range(1, 5)]
    (run / "curves.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    kept = keep(run, tmp_path / "results")
    assert kept.is_file() and kept.with_suffix(".curves.png").stat().st_size > 1000
    assert "response_labels/cpu-seed1024.curves.png" in (tmp_path / "results" / PAGE).read_text(encoding="utf-8")


def test_no_curves_no_picture(tmp_path):
    assert draw_curves(tmp_path / "x.curves.jsonl") is None
