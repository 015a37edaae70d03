"""The file of words: read, refused, and measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from empatheia.care.lexicon import LEXICON, Lexicon, expression_of
from empatheia.care.normalising import tokens_of
from empatheia.errors import DataError


def found(lexicon: Lexicon, text: str) -> list[str]:
    return [hit.line.pattern for hit in lexicon.hits(tokens_of(text))]


def small(folder: Path, *rows: str) -> Lexicon:
    path = folder / "lexicon.tsv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return Lexicon.read(path)


def test_every_shipped_line_tells_where_it_comes_from_and_what_it_finds():
    lexicon = Lexicon.read()
    assert len(lexicon.lines) > 200 and all(line.provenance for line in lexicon.lines)
    for row in LEXICON.read_text(encoding="utf-8").splitlines():
        cells = row.split("\t")
        if len(cells) > 1 and cells[0] != "pattern":
            assert len(cells) == 8 and all(cell.isdigit() for cell in cells[5:]), row


def test_whole_tokens_are_compared(tmp_path: Path):
    lexicon = small(tmp_path, "killed\tideation\tcrisis\thard\ttest")
    assert found(lexicon, "He killed it") and not found(lexicon, "She is skilled")


def test_gaps_choices_optional_words_and_ends(tmp_path: Path):
    lexicon = small(
        tmp_path,
        "@END = end stop",
        "@END ~2 it all?\tideation\tcrisis\thard\ttest",
        "^ bye $\tfarewell\tconcern\tsoft\ttest",
    )
    assert found(lexicon, "end it") and found(lexicon, "stop with it all") and not found(lexicon, "end a b c it")
    assert found(lexicon, "Hm. Bye!") and not found(lexicon, "bye bye")


def test_masked_words_are_read_no_further(tmp_path: Path):
    rows = ["kill\tideation\tcrisis\thard\ttest", "kill time\t-\tnone\tmask\ttest"]
    assert found(small(tmp_path, *rows), "to kill time") == ["kill time"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("kill\tideation", "columns"),
        ("kill\tideatoin\tcrisis\thard\ttest", "Did you mean|ideation"),
        ("kill\tideation\tgrave\thard\ttest", "Accepted: none, concern, crisis"),
        ("kill\tideation\tcrisis\tfirm\ttest", "hard, soft, mask"),
        ("kill\tideation\tcrisis\thard\t ", "provenance"),
        ("a?\tideation\tcrisis\thard\ttest", "no required word"),
        ("@NO\tideation\tcrisis\thard\ttest", "cannot be used"),
        ("a ~99999999999 b\tideation\tcrisis\thard\ttest", "99999999999 words between others; accepted: 1 to 20"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, row: str, message: str):
    with pytest.raises(DataError, match=message) as raised:
        small(tmp_path, "die\tideation\tcrisis\thard\ttest", row)
    assert "line 2" in str(raised.value)


def test_a_missing_or_empty_file_is_told(tmp_path: Path):
    with pytest.raises(DataError, match="cannot be read"):
        Lexicon.read(tmp_path / "none.tsv")
    with pytest.raises(DataError, match="holds no line"):
        small(tmp_path, "# nothing")


def test_keys_are_of_the_rarest_element():
    assert expression_of("a|b|c die", {})[1] == {"die"}
