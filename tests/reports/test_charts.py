"""Pictures from self-made numbers: written whole, the same twice, and with what they must show."""

import builtins
import json
from pathlib import Path

import numpy as np
import pytest

from empatheia.errors import DataError, MissingDependencyError
from empatheia.metrics.published import read_published
from empatheia_research.reports.charts import save
from empatheia_research.reports.curves import curves_chart, curves_of, read_curves
from empatheia_research.reports.label_charts import confusion_chart, in_order, labels_in, read_rows, shares_chart
from empatheia_research.reports.system_charts import (
    Point,
    points_of,
    printed_points,
    systems_chart,
    tradeoff_chart,
    unit_of,
)

pytest.importorskip("matplotlib")

CURVES = [
    {"stage": "a", "step": 1, "loss": 3.0, "loss_words": 2.0, "loss_emotion": 1.0},
    {"stage": "a", "step": 5, "loss": 2.0, "loss_words": 1.5, "loss_emotion": 0.5},
    {"stage": "a", "step": 5, "eval_loss": 2.5, "eval_words": 1.75, "eval_emotion": 0.0},
    {"stage": "b", "step": 3, "loss": 1.0, "loss_words": 1.0},
]


def curves_file(folder: Path, rows=CURVES) -> Path:
    file = folder / "curves.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_png_and_svg_are_whole_and_the_same_twice(tmp_path):
    written = [save(shares_chart({"x": ["sad", "joyful"]}), tmp_path / name) for name in ("a", "b")]
    assert [file.name for file in written[0]] == ["a.png", "a.svg"]
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    (one,) = save(shares_chart({"x": ["sad"]}), tmp_path / "only.svg")
    assert one.name == "only.svg" and not (tmp_path / "only.svg.png").exists()
    with pytest.raises(DataError, match="does not exist; create it first"):
        save(shares_chart({"x": ["sad"]}), tmp_path / "no" / "a.png")


def test_a_picture_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    figure = shares_chart({"x": ["sad"]})

    def half(self, file, **options):
        Path(file).write_bytes(b"")
        raise OSError(28, "No space left on device")

    (tmp_path / "old.png").write_bytes(b"old")
    monkeypatch.setattr(type(figure), "savefig", half)
    for name in ("a.png", "a.svg", "both", "old.png"):
        with pytest.raises(OSError, match="No space left"):
            save(figure, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["old.png"] and (tmp_path / "old.png").read_bytes() == b"old"
    with pytest.raises(DataError, match=r"is a folder; name a file, e\.g\. .*chart\.png"):
        save(figure, tmp_path)


def test_without_matplotlib_the_command_is_told(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError, match=r'pip install "empatheia\[plots\]"'):
        shares_chart({"x": ["sad"]})


def test_curves_by_stage_and_loss(tmp_path):
    curves = read_curves(curves_file(tmp_path))
    figure = curves_chart({"run": curves})
    first, second = figure.axes
    assert [axes.get_title(loc="left") for axes in (first, second)] == ["stage a", "stage b"]
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in first.lines]
    assert lines == [([1, 5], [2.0, 1.5]), ([5], [1.75]), ([1, 5], [1.0, 0.5])]  # a loss that is 0 was not computed
    assert (first.get_xlabel(), first.get_ylabel()) == ("updates", "loss (nats)")
    several = curves_chart({"one": curves, "two": read_curves(tmp_path / "curves.jsonl")})
    assert [list(line.get_ydata()) for line in several.axes[0].lines] == [[3.0, 2.0], [2.5]] * 2


def test_long_names_stay_inside_the_picture(tmp_path):
    curves = {"a": read_curves(curves_file(tmp_path))["a"]}
    figure = curves_chart({"rashkin2018/emotion_situation_with_a_long_name cpu, seed 1024": curves})
    figure.canvas.draw()
    box = figure._suptitle.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1


def test_where_curves_lie_and_broken_ones(tmp_path):
    file = curves_file(tmp_path)
    kept = tmp_path / "cpu-seed1.curves.jsonl"
    kept.write_text(file.read_text())
    assert curves_of(tmp_path) == curves_of(file) == file
    assert curves_of(tmp_path / "cpu-seed1.json") == kept and curves_of(tmp_path / "metrics.json") == file
    assert curves_of(tmp_path / "nothing") is None or curves_of(tmp_path / "nothing") == file
    file.write_text('{"stage": "a", "step": 1}\n{"stage": "a"}\n')
    assert [row["step"] for row in read_curves(file)["a"]] == [1]
    for broken in ('{"stage": "a"}', "[", '{"stage": "a", "step": "x"}', "[1]", '{"stage": "a", "step": NaN}'):
        file.write_text(broken + "\n")
        with pytest.raises(DataError, match=r"curves.jsonl, line 1: not a row of curves"):
            read_curves(file)
    file.write_text("")
    with pytest.raises(DataError, match="holds no curves"):
        read_curves(file)


def test_one_malformed_row_ends_no_picture(tmp_path, cli):
    file = curves_file(tmp_path)
    rows = [
        "{",
        "[1, 2]",
        '{"stage": "x"}',
        '{"stage": "soft", "step": 3, "loss": "much", "eval_loss": [1]}',
        "9" * 5000,
    ]
    file.write_text(file.read_text() + "\n".join(rows))
    done = cli("plot", "curves", str(file), "--out", str(tmp_path / "out.png"))
    assert done.code == 0 and (tmp_path / "out.png").stat().st_size, done.err


def test_confusion_shares_by_gold_label():
    figure = confusion_chart(["sad", "sad", "sad", "joyful"], ["sad", "sad", "joyful", "joyful"])
    axes = figure.axes[0]
    shown = np.asarray(axes.images[0].get_array())
    assert shown.round(1).tolist() == [[100.0, 0.0], [33.3, 66.7]]  # joyful before sad: pleasant ones first
    assert [text.get_text() for text in axes.get_yticklabels()] == ["joyful (1)", "sad (3)"]
    assert "4 items, 75.0 %" in axes.get_title(loc="left")
    with pytest.raises(DataError, match="3 gold and 2 predicted labels"):
        confusion_chart(["sad"] * 3, ["sad"] * 2)


def test_order_of_labels():
    assert in_order(["neutral", "zest", "sad", "joyful"]) == ["joyful", "sad", "neutral", "zest"]


def test_labels_of_files(tmp_path):
    file = tmp_path / "outputs.jsonl"
    file.write_text('{"gold": "sad", "predicted": ["joyful", "sad"]}\n\n{"gold": "sad", "predicted": "sad"}\n')
    rows = read_rows(tmp_path)
    assert labels_in(rows, ("gold", "emotion"), file) == ["sad", "sad"]
    assert labels_in(rows, ("predicted",), file) == ["joyful", "sad"]
    with pytest.raises(DataError, match="no row has a label; looked for intent; found gold, predicted"):
        labels_in(rows, ("intent",), file)
    with pytest.raises(DataError, match="item 2 has no 'gold'"):
        labels_in([{"gold": "sad"}, {}], ("gold",), file)
    file.write_text('{"gold": "sad"}\n[1]\n')
    with pytest.raises(DataError, match="line 2: not a JSON object"):
        read_rows(file)
    with pytest.raises(DataError, match="there is no file"):
        read_rows(tmp_path / "other.jsonl")


def test_shares_of_labels():
    figure = shares_chart({"a": ["sad", "sad", "neutral", "joyful"], "b": ["sad"]})
    axes = figure.axes[0]
    marks = {line.get_label(): list(line.get_xdata()) for line in axes.lines if "(" in str(line.get_label())}
    assert marks == {"a (4)": [25.0, 50.0, 25.0], "b (1)": [0.0, 100.0, 0.0]}
    assert axes.get_xlabel() == "share of replies (percent)"
    with pytest.raises(DataError, match="at least one item"):
        shares_chart({"a": []})


def test_length_and_variety_of_systems():
    figure = systems_chart({"a": ["x y z", "x y"], "gold": ["one two three four"]})
    lengths, variety = figure.axes
    assert [float(line.get_xdata()[0]) for line in lengths.lines] == [2.5, 4.0]
    first = [round(float(line.get_xdata()[0]), 2) for line in variety.lines]
    assert first == [60.0, 66.67, 100.0, 100.0]  # 3 of 5 words, 2 of 3 pairs
    with pytest.raises(DataError, match="the replies of a have no word"):
        systems_chart({"a": ["", " "]})


def test_tradeoff_of_runs_and_printed_rows():
    def scored(value, interval=None):
        return {"value": value, "unit": "percent", "interval": interval}

    records = [
        {
            "recipe": "r/a",
            "size": "cpu",
            "metrics": {"accuracy": scored(42.0, [41.0, 43.0]), "dist_corpus_2": scored(3.0)},
        },
        {"recipe": "r/b", "size": "cpu", "metrics": {"accuracy": scored(40.0), "nll": 1.0}},
    ]
    points = points_of(records, "accuracy", "dist_corpus_2")
    assert points == [Point("r/a cpu", 42.0, 3.0, (41.0, 43.0), None)]
    assert unit_of(records, "accuracy") == "percent" and unit_of(records, "nll") == ""
    own = {"value": 0.14, "unit": "fraction", "interval": [0.13, 0.15]}
    metrics = {"bertscore_f_rescaled": own, "accuracy": scored(1.0)}
    seeds = [{"recipe": "r/c", "size": "cpu", "seed": seed, "metrics": metrics} for seed in (1, 2)]
    first, second = points_of(seeds, "bertscore_f_rescaled", "accuracy")  # a fraction in the unit of printed rows
    assert (first.name, second.name) == ("r/c cpu, seed 1", "r/c cpu, seed 2")
    assert (first.x, first.x_interval) == (pytest.approx(14.0), pytest.approx((13.0, 15.0)))
    assert unit_of(seeds, "bertscore_f_rescaled") == "percent"
    table = [n for n in read_published() if (n.paper, n.table) == ("gao2021", "Table 2")]
    printed = printed_points(table, "accuracy", "dist_corpus_2")
    assert len(printed) == 6 and printed[-1] == Point("gao2021: Ours(Soft)", 42.4, pytest.approx(8.4), is_printed=True)
    axes = tradeoff_chart([*points, *printed], "accuracy", "dist_corpus_2", "percent").axes[0]
    assert axes.get_xlabel() == "accuracy (percent)" and "7  gao2021: Ours(Soft)" in axes.texts[-1].get_text()
    with pytest.raises(DataError, match=r"No run has 'acuracy'.*Found: accuracy, dist_corpus_2"):
        points_of(records, "acuracy", "dist_corpus_2")
