"""ESConv's strategies: turns by themselves, and in the conversations of the first paper's dev and test part."""

from __future__ import annotations

import pytest

from empatheia.errors import DataError
from empatheia.records.dialogue import Turn
from empatheia_research.corpora import conversations, esconv
from empatheia_research.corpora.loading import sample_root


def test_the_turns_of_esconv_in_their_form(tmp_path):
    corpus = esconv.load_turns("train", sample_root())
    assert [len(d.turns) for d in corpus] == [1] * 21 and corpus.notes == (
        "1 turns with several strategies are left out",
    )
    assert corpus[0].turns == (Turn("listener", "What happened then?"),)
    assert corpus.turn_labels[corpus[0].id] == ("Question",)
    (folder := tmp_path / "esconv_strategies").mkdir()
    file = folder / "supporter_turns.tsv"
    file.write_text("source_split\tstrategies\ttext\ntrain\tSmalltalk\tHello\ntrain\tQuestion\tWhy?\ntrain\tOthers\n")
    corpus = esconv.load_turns("train", tmp_path)
    assert [d.turns[0].text for d in corpus] == ["Why?"]
    assert [problem.line for problem in corpus.problems] == [2, 4] and "'Smalltalk'" in str(corpus.problems[0])
    with pytest.raises(DataError, match="tsv:2: strategy 'Smalltalk'; accepted: Affirmation"):
        esconv.load_turns("train", tmp_path, strict=True)
    with pytest.raises(DataError, match="no turn of split 'valid' can be used"):
        esconv.load_turns("valid", tmp_path)
    file.write_text("split\ttext\n")
    with pytest.raises(DataError, match="no column 'source_split'; needed: source_split, strategies, text"):
        esconv.load_turns("train", tmp_path)


def test_the_dialogues_of_esconv_in_their_form():
    train, valid, test = (esconv.load_dialogues(split, sample_root()) for split in ("train", "valid", "test"))
    assert len(train) + len(valid) == 12 and len(test) == 2 and len(valid)
    assert {conversations.part_of(dialogue) for dialogue in valid} == {"valid"}
    assert train.turn_labels[train[0].id][:2] == ("", "Question") and set(train.turn_labels) == {d.id for d in train}


@pytest.mark.real_data
def test_counts_of_esconv(data_folder):
    turns = [len(esconv.load_turns(split, data_folder)) for split in ("train", "valid", "test")]
    assert turns == [7_450, 2_488, 2_527]
    dialogues = [esconv.load_dialogues(split, data_folder) for split in ("train", "valid", "test")]
    assert sum(map(len, dialogues)) == 421
    found = {label for part in dialogues for labels in part.turn_labels.values() for label in labels}
    assert found == {"", *esconv.STRATEGIES}
