import sys
from types import ModuleType

import pytest

from empatheia.errors import DataError, MissingResourceError
from empatheia.records.dialogue import Example, Turn
from empatheia_research.corpora.senticnet import read_related
from empatheia_research.side_inputs.concept_graph import ConceptGraph
from empatheia_research.text.collation import Layout, encode_examples
from empatheia_research.text.tokenizer import DialogueTokenizer


def row(*related):
    return ["0.9", "0", "0", "0.7", "#joy", "#eagerness", "positive", "0.8", *related]


@pytest.fixture
def installed(monkeypatch):
    """The package's form with entries of our own."""

    def install(table):
        package, module = ModuleType("senticnet"), ModuleType("senticnet.senticnet6")
        module.senticnet = table
        monkeypatch.setitem(sys.modules, "senticnet", package)
        monkeypatch.setitem(sys.modules, "senticnet.senticnet6", module)

    return install


def test_five_related_concepts_of_each(installed):
    installed({"wedding": row("joy", "win_prize", "happy", "cake", "dance")})
    assert [tuple(entry) for entry in read_related()] == [
        ("RelatedTo", "wedding", tail, 1.0) for tail in ("joy", "win_prize", "happy", "cake", "dance")
    ]


def test_a_table_of_another_form_is_told(installed):
    installed({"wedding": ["joy"]})
    with pytest.raises(DataError, match="concept 'wedding' has 1 fields; accepted: 13"):
        list(read_related())


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "senticnet", None)
    with pytest.raises(MissingResourceError, match=r"pip install 'empatheia\[concepts\]'"):
        list(read_related())


def test_it_stands_in_for_conceptnet(installed):
    installed({"shelf": row("love", "win_prize", "happy", "shelf", "table")})
    tokenizer = DialogueTokenizer.train_words(["the shelf table is love and happy"])
    graph = ConceptGraph(tokenizer, assertions="senticnet", lexicon="sample", parts_of_speech=False)
    assert {tail for tail, _ in graph.concepts["shelf"]} == {"happy", "love"}
    assert set(graph.concepts) == {"shelf"}
    example = Example((Turn("speaker", "the shelf"),), None)
    items = encode_examples([example], tokenizer, Layout(separators=False))
    graph.add([example], items)
    assert [concept for _, concept, _ in items[0].extra["concepts"]] == [graph.concepts["shelf"][0][0]]
    again = ConceptGraph(tokenizer, **graph.settings())  # a saved model needs no package
    assert again.concepts == graph.concepts and again.settings() == graph.settings()
