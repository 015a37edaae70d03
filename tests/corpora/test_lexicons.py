"""Lexicons: kind by content, scales onto 0-1, damage named by line."""

from __future__ import annotations

import gzip
import json

import pytest

from empatheia.errors import DataError, MissingResourceError
from empatheia_research.corpora import lexicons

WARRINER = ',Word,V.Mean.Sum,V.SD.Sum,A.Mean.Sum,D.Mean.Sum\n1,Calm,9,1,1,5\n2,"war",1,1,9,3\n'
VADER = "calm\t4.0\t0.8\t[4, 4]\n:(\t-2.0\t0.8\t[-2, -2]\n"
NRC_VAD = "calm\t1.000\t0.100\t0.500\nwar\t0.000\t0.900\t0.250\n"
NRC_DICT = json.dumps([["Calm", "war"], {"calm": 1, "storm": 2}])


def read(tmp_path, content):
    path = tmp_path / "lexicon"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return lexicons.load(path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (WARRINER, "warriner", {"calm", "war"}),
        (VADER, "vader", {"calm", ":("}),
        (NRC_VAD, "nrc_vad", {"calm", "war"}),
        ("Word\tValence\tArousal\tDominance\n" + NRC_VAD, "nrc_vad", {"calm", "war"}),
        (NRC_DICT, "nrc_dict", {"calm", "war", "storm"}),
    ],
)
def test_kinds(tmp_path, content, kind, words, packed):
    lexicon = read(tmp_path, gzip.compress(content.encode()) if packed else content)
    assert (lexicon.kind, lexicon.words) == (kind, words)
    assert lexicons.load_words(tmp_path / "lexicon") == words


def test_scales(tmp_path):
    warriner = read(tmp_path, WARRINER).affect
    assert warriner["calm"] == lexicons.Affect(1.0, 0.0, 0.5)
    assert warriner["war"] == lexicons.Affect(0.0, 1.0, 0.25)
    vader = read(tmp_path, VADER).affect
    assert vader["calm"] == lexicons.Affect(1.0)
    assert vader[":("] == lexicons.Affect(0.25)
    assert read(tmp_path, NRC_VAD).affect["war"] == lexicons.Affect(0.0, 0.9, 0.25)
    assert read(tmp_path, NRC_DICT).affect == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("hello world\n", r"lexicon:1: not a known lexicon: 'hello world'; accepted: Warriner"),
        ("", "not a known lexicon: ''"),
        (NRC_VAD + "odd\t1\n", "lexicon:3: 2 tab-separated fields, expected 4"),
        (NRC_VAD + "odd\t1\t1\t7\n", "lexicon:3: 7.0 lies outside 0 to 1"),
        (NRC_VAD + "odd\t1\tnan\t1\n", "lexicon:3: nan lies outside"),
        (VADER + "odd\tx\t1\t[]\n", "lexicon:3: 'x' is not a number"),
        (WARRINER + "3,odd,,1,1,1\n", "lexicon:4: a field of Word"),
        ("[1, 2", r"lexicon:1: not JSON"),
        ("[[1], {}]", r"NRCDict\.json is a list of two"),
        ('["a"]', r"NRCDict\.json is a list of two"),
        ("[[], {}]", "no words in this nrc_dict lexicon"),
        ("Word\tV\tA\tD\n", "no words in this nrc_vad lexicon"),
    ],
)
def test_damage(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, content)


def test_missing(no_data, tmp_path):
    with pytest.raises(DataError, match="no lexicon given; name a file, or one of: warriner, vader"):
        lexicons.load(None)
    with pytest.raises(MissingResourceError, match=r"Ratings_Warriner_et_al.csv"):
        lexicons.load("warriner")
    with pytest.raises(MissingResourceError, match=r"nothing.txt"):
        lexicons.load(tmp_path / "nothing.txt")


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "rows"), [("warriner", 13_915), ("vader", 7_520)])
def test_real_lexicons(data_folder, name, rows):
    words = lexicons.load_words(name)
    assert rows * 0.99 < len(words) <= rows  # a few spellings differ in case only
    assert {"happy", "sad"} <= words
