"""The concept graph: intensity, ConceptNet's form, which concepts a context gets (checks 24 and 27)."""

import gzip
import json

import pytest

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.records.dialogue import Dialogue
from empatheia_research.corpora import sample
from empatheia_research.corpora.conceptnet import read_assertions
from empatheia_research.corpora.lexicons import Affect
from empatheia_research.side_inputs import make_side_inputs
from empatheia_research.side_inputs.concept_graph import (
    SAMPLE_ASSERTIONS,
    ConceptGraph,
    _worth,
    find_concepts,
    intensity,
)
from empatheia_research.text.collation import Layout, encode_examples
from empatheia_research.text.tokenizer import DialogueTokenizer

SAMPLE = sample.root() / SAMPLE_ASSERTIONS
AFFECT = {
    "high": Affect(1.0, 1.0, 0.5),
    "low": Affect(0.0, 1.0, 0.5),
    "mild": Affect(0.6, 0.2, 0.5),
    "warm": Affect(0.95, 0.6, 0.5),
    "dull": Affect(0.5, 0.0, 0.5),
}


def assertion(relation, head, tail, weight=1.0, languages=("en", "en")):
    ends = [f"/c/{language}/{word}" for language, word in zip(languages, (head, tail), strict=True)]
    return "\t".join((f"/a/[/r/{relation}/]", f"/r/{relation}", *ends, json.dumps({"weight": weight})))


def write(tmp_path, *lines):
    path = tmp_path / "assertions.csv"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def graph():
    tokenizer = DialogueTokenizer.train_words(t.text for d in sample.load("train") for t in d.turns)
    return ConceptGraph(tokenizer, assertions="sample", lexicon="sample", parts_of_speech=False)


def added(graph, turns):
    examples = [Dialogue.of(*turns, "okay").examples()[-1]]
    items = encode_examples(examples, graph.tokenizer, Layout(separators=False))
    graph.add(examples, items)
    return items


def test_intensity():
    """Check 24."""
    assert intensity(Affect(0.5, 0.0)) == pytest.approx(-0.1065, abs=1e-4)
    assert intensity(Affect(1.0, 1.0)) == pytest.approx(1.0576, abs=1e-4)
    assert intensity(Affect(0.0, 1.0)) == pytest.approx(1.0576, abs=1e-4)


def test_at_most_ten_concepts_all_intense(graph):
    """Check 27."""
    words = sorted(graph.concepts)
    assert len(words) > 10
    (item,) = added(graph, [" ".join(words[:30])])
    chosen = item.extra["concepts"]
    assert len(chosen) == 10 and all(eta >= 0.6 for _, _, eta in chosen)
    left_out = [graph.concepts[w][0][1] for w in words[:30]]
    assert sorted((eta for _, _, eta in chosen), reverse=True) == sorted(left_out, reverse=True)[:10]
    assert [position for position, *_ in chosen] == sorted(position for position, *_ in chosen)


def test_a_word_brings_its_best_concept_to_its_place(graph):
    (item,) = added(graph, ["My puppy is at the wedding"])
    names = {position: concept for position, concept, _ in item.extra["concepts"]}
    assert names == {2: "love", 6: graph.concepts["wedding"][0][0]}
    assert item.extra["token_intensities"][1] == 0.0 and item.extra["token_intensities"][2] > 0.6
    batch = graph.collate([item], 0, len(item.input_ids) + 2)
    assert batch["concept_heads"].tolist() == [[-1, 2, 6]]
    assert batch["concept_ids"][0, 0] == graph.tokenizer.sep_id and batch["concept_intensities"][0, 0] == 0.0
    assert batch["token_intensities"].shape == (1, len(item.input_ids) + 2)


def test_a_context_without_concepts_has_no_separator(graph):
    (item,) = added(graph, ["it was what it was"])
    batch = graph.collate([item], 0, 9)
    assert not batch["concept_mask"].any() and batch["concept_heads"].tolist() == [[-1]]


def test_which_assertions_count(tmp_path):
    path = write(
        tmp_path,
        assertion("Causes", "dull", "high"),
        assertion("Causes", "dull", "low", 0.5),  # weight below 1
        assertion("AtLocation", "dull", "warm"),  # a relation that is left out
        assertion("Causes", "dull", "mild"),  # not intense
        assertion("Causes", "dull", "dull"),
        assertion("Causes", "dull", "elsewhere"),  # not in the vocabulary
        assertion("RelatedTo", "warm", "dull"),  # the other direction counts, too
        assertion("Causes", "dull", "low", 1.0, ("en", "de")),
    )
    vocabulary = frozenset(AFFECT)
    concepts = find_concepts(path, AFFECT, vocabulary)
    assert [name for name, _ in concepts["dull"]] == ["high", "warm"] and set(concepts) == {"dull"}
    assert len(find_concepts(path, AFFECT, vocabulary, n_stored=1)["dull"]) == 1
    repo = find_concepts(path, AFFECT, vocabulary, variant="repo")
    assert [name for name, _ in repo["dull"]] == ["high", "warm", "low"]  # file order, a German tail


def test_the_released_form_keeps_the_files_order_and_the_last_relation(tmp_path):
    lines = [assertion("Causes", "dull", "warm"), assertion("Causes", "dull", "high")]
    path = write(tmp_path, *lines, assertion("Causes", "mild", "low"), assertion("Synonym", "mild", "low"))
    assert [n for n, _ in find_concepts(path, AFFECT, frozenset(AFFECT))["dull"]] == ["high", "warm"]
    repo = find_concepts(path, AFFECT, frozenset(AFFECT), variant="repo")
    assert [n for n, _ in repo["dull"]] == ["warm", "high"] and "mild" not in repo


@pytest.mark.parametrize(("variant", "expected"), [("paper", [3, 4]), ("repo", [1, 3])])
def test_the_released_form_ranks_concepts_by_whole_numbers(variant, expected):
    """Of .7, .9, 1.02, .95 the two most intense are the last; cut to 0, 0, 1, 0 they are the third and the first."""
    concepts = {"a": [("e", 0.7)], "b": [("f", 0.9)], "c": [("g", 1.02)], "d": [("h", 0.95)]}
    words = {"a": "puppy", "b": "wedding", "c": "accident", "d": "holiday"}
    concepts = {words[name]: entries for name, entries in concepts.items()}
    tokenizer = DialogueTokenizer.train_words([" ".join((*words.values(), *"efgh"))])
    side = ConceptGraph(tokenizer, most=2, parts_of_speech=False, variant=variant, concepts=concepts, intensities={})
    (item,) = added(side, [" ".join(words.values())])
    assert [position for position, *_ in item.extra["concepts"]] == expected


def test_a_gzipped_file_reads_the_same(tmp_path):
    packed = tmp_path / "assertions.csv.gz"
    packed.write_bytes(gzip.compress(SAMPLE.read_bytes()))
    assert list(read_assertions(packed)) == list(read_assertions(SAMPLE))
    first = next(read_assertions(SAMPLE))
    assert (first.relation, first.head, first.tail, first.weight) == ("Causes", "scratching", "scared", 2.0)


def test_damaged_lines_and_missing_files_are_told(tmp_path, graph):
    with pytest.raises(DataError, match=r"assertions.csv:2: 2 tab-separated fields"):
        list(read_assertions(write(tmp_path, assertion("Causes", "a", "b"), "/a/x\t/c/en/y")))
    with pytest.raises(DataError, match=r":1: the fifth field has no weight"):
        list(read_assertions(write(tmp_path, assertion("Causes", "a", "b").replace("weight", "wait"))))
    with pytest.raises(MissingResourceError, match="no ConceptNet assertions at"):
        list(read_assertions(tmp_path / "none.csv"))
    with pytest.raises(MissingResourceError, match=r"assertions names no file.*assertions=PATH"):
        ConceptGraph(graph.tokenizer, lexicon="sample", parts_of_speech=False)
    with pytest.raises(ConfigError, match="has no arousal"):
        ConceptGraph(
            graph.tokenizer,
            assertions="none",
            lexicon=str(sample.root() / "lexicons" / "affect.txt"),
            parts_of_speech=False,
        )


def test_settings_make_an_equal_one_without_the_files(graph):
    settings = json.loads(json.dumps(graph.settings())) | {"assertions": "gone.csv", "lexicon": "gone.txt"}
    (again,) = make_side_inputs(("concept_graph",), {"concept_graph": settings}, graph.tokenizer)
    assert again.concepts == graph.concepts and again.intensities == graph.intensities


def test_none_leaves_the_intensities(graph):
    side = ConceptGraph(graph.tokenizer, assertions="none", lexicon="sample", parts_of_speech=False)
    assert not side.concepts and side.intensities == graph.intensities


def test_a_concept_that_is_felt_alike_is_worth_more():
    """By hand: |0.9 - 0.1| + |0.5 - 0.7| = 1, so half less than one that is felt the same."""
    one, other = Affect(0.9, 0.5, 0.5), Affect(0.1, 0.7, 0.5)
    assert _worth(one, other) == pytest.approx((intensity(other), intensity(other) + 0.5))
    assert _worth(other, other) == pytest.approx((intensity(other), intensity(other) + 1.0))
