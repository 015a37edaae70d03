"""Printed numbers and recipes: every automatic number has one or a reason, no reason is out of date."""

import re
from pathlib import Path

import pytest
import yaml

from empatheia.errors import ConfigError
from empatheia.metrics.published import DEFINITIONS, published, read_published
from empatheia_research.reports import targets as module
from empatheia_research.reports.targets import (
    answering,
    is_automatic,
    kind_meaning,
    notes_of,
    read_targets,
    reason_of,
    table_key,
    tables,
    tables_named,
)
from empatheia_research.shipped import recipes_root

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def targets():
    return read_targets(recipes_root())


def recipes_of(targets, *place, metric, **more):
    return {target.recipe for target in answering(published(*place, **more)[metric], targets)}


def test_every_printed_number_has_a_recipe_or_a_reason(targets):
    without = [n for n in read_published() if not answering(n, targets) and reason_of(n) is None]
    assert without == []


def test_no_number_has_both(targets):
    both = [n for n in read_published() if answering(n, targets) and reason_of(n) is not None]
    assert both == [], "a recipe answers it now: take the entry out of reasons.yaml"


def test_every_target_names_a_printed_row(targets):
    assert len(targets) > 20
    for target in targets:
        assert published(target.paper, target.table, target.row, target.setting, target.dataset)


def test_every_entry_of_the_file_selects_something_and_every_kind_is_explained():
    tree = yaml.safe_load(Path(module.__file__).with_name("reasons.yaml").read_text(encoding="utf-8"))
    numbers = read_published()
    for entry in (*tree["reasons"], *tree["notes"]):
        assert set(entry) <= {*module._SELECTORS, "kind", "reason", "recipes", "see", "note"}, entry
        chosen = [n for n in numbers if module._selects(entry, n)]
        assert chosen, entry
        assert set(entry.get("recipes", {})) <= {n.row for n in chosen}, entry
    assert {entry["kind"] for entry in tree["reasons"]} == set(tree["kinds"])
    assert kind_meaning("undefined")


def test_links_lead_to_headings():
    pages = {}
    tree = yaml.safe_load(Path(module.__file__).with_name("reasons.yaml").read_text(encoding="utf-8"))
    for see in {entry["see"] for entry in (*tree["reasons"], *tree["notes"]) if "see" in entry}:
        page, _, anchor = see.partition("#")
        heads = re.findall(r"^#+ (.*)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
        pages[see] = {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}
        assert anchor in pages[see], see
    assert pages


def test_one_model_answers_the_tables_that_print_it(targets):
    soft = {"gao2021/soft", "gao2021/soft_repo"}
    assert soft <= recipes_of(targets, "gao2021", "2", "Ours(Soft)", metric="BLEU")
    assert soft <= recipes_of(targets, "gao2021", "4", "Ours(Soft)", metric="Accuracy")
    assert soft <= recipes_of(targets, "gao2021", "7", "Ours(Soft)", metric="Dist-1", setting="run 3")
    assert recipes_of(targets, "gao2021", "4", "Ours(Hard) w/o ec", metric="BLEU") == {"gao2021/without_ec"}
    assert recipes_of(targets, "gao2021", "3", "Ours(Soft)", metric="Empathy") == set()


def test_a_row_of_another_test_set_is_another_row(targets):
    assert recipes_of(targets, "rashkin2018", "9", "fastText", metric="Acc", dataset="ED") == {"rashkin2018/fasttext"}
    cut = recipes_of(targets, "rashkin2018", "9", "fastText", metric="Acc", dataset="ED-cut")
    assert cut == {"rashkin2018/fasttext_cut"}
    assert recipes_of(targets, "meed2", "4", "MEED2 (OS → ED)", metric="weighted F1", dataset="EDOS test") == set()


def test_a_trained_annotator_answers_every_fold_it_is_tested_on(targets):
    for row in ("train 2, test 2", "train 2, test 1"):
        found = recipes_of(targets, "reccon", "subtask 2, with context", f"RoBERTa-base, {row}", metric="macro F1")
        assert found == {"reccon/entailment_fold2"}
    place = ("reccon", "subtask 2, without context", "RoBERTa-base, train 1, test 3")
    assert recipes_of(targets, *place, metric="Pos. F1") == {"reccon/entailment_without_context"}


def test_ratings_and_facts_are_not_automatic():
    by_metric = {(n.paper, n.table, n.metric): n for n in read_published()}
    assert not is_automatic(by_metric["gao2021", "Table 3", "Empathy"])
    assert not is_automatic(by_metric["gao2021", "Table 3 caption", "Fleiss kappa"])
    assert not is_automatic(by_metric["imagine", "Table 1", "BLEU-2"])
    assert is_automatic(by_metric["imagine", "Table 1", "PPL"])
    assert all(isinstance(DEFINITIONS[n.paper, n.metric], tuple) for n in read_published() if is_automatic(n))


def test_known_flaws_of_the_papers_are_noted():
    mime = published("gao2021", "2", "MIME")["Accuracy"]
    assert any("38.3" in note.text and note.see.startswith("concepts/gao2021.md") for note in notes_of(mime))
    assert any("32.36" in note.text for note in notes_of(mime))
    assert any(
        "gold label" in n.text for n in notes_of(published("meed2", "3", "MEED2 (OS)", dataset="ED test")["PPL"])
    )


def test_names_of_tables():
    assert tables_named(["gao2021/2", "gao2021/Table 2", "gao2021/2"]) == ["gao2021/2"]
    assert tables_named(["reccon/subtask 2, with context"]) == ["reccon/subtask-2-with-context"]
    assert tables_named(["meed2"]) == [key for key in tables() if key.startswith("meed2/")]
    assert sum(map(len, tables().values())) == len(read_published())
    assert len({table_key(number) for number in read_published()}) == len(
        {(n.paper, n.table) for n in read_published()}
    )
    with pytest.raises(ConfigError, match=r"unknown paper 'gao2022'.*Did you mean 'gao2021'.*Known: kim2021"):
        tables_named(["gao2022/2"])
    with pytest.raises(ConfigError, match=r"unknown table 'gao2021/9'.*Known: gao2021/2"):
        tables_named(["gao2021/9"])
