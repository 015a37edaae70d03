"""How an understanding, a reply and an analysis show themselves: short at a prompt, marked in a notebook."""

from __future__ import annotations

from empatheia.records.analysis import Analysis, Inference, Mechanism, TurnLabels, WordScores
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Reply, Span, Turn, Understanding
from empatheia.taxonomy import EMOTIONS

TEXT = "I lost <b>my</b> dog & my cat."


def understanding(**more) -> Understanding:
    emotions = dict.fromkeys(EMOTIONS, 0.3 / 31) | {"sad": 0.7}
    fields = {"emotions": emotions, "causes": (Span(0, 2, 20, 0.9),), "words": (), "turns": (Turn("speaker", TEXT),)}
    return Understanding(**{**fields, **more})


def test_at_a_prompt():
    shown = repr(understanding(uncertain=("emoji are not understood",)))
    assert shown.startswith(f"Understanding({TEXT!r}; sad 70%, ") and "causes: 'lost <b>my</b> dog'" in shown
    assert shown.endswith("uncertain: emoji are not understood)") and len(shown) < 200
    even = understanding(emotions=dict.fromkeys(EMOTIONS, 1 / 32), causes=())
    assert repr(even) == f"Understanding({TEXT!r}; names no emotion)"


def test_in_a_notebook():
    shown = understanding()._repr_html_()
    assert "I <mark>lost &lt;b&gt;my&lt;/b&gt; dog</mark> &amp; my cat." in shown and "sad 70%" in shown
    assert "<b>" not in shown and shown.count("<tr>") == 2


def test_a_reply():
    reply = Reply("That's <hard>.", understanding(), "five steps")
    assert repr(reply).startswith('Reply("That\'s <hard>."; by five steps; to Understanding(')
    shown = reply._repr_html_()
    assert shown.endswith("<tr><th>reply</th><td><b>That&#x27;s &lt;hard&gt;.</b></td></tr></table>")
    assert shown.count("<tr>") == 3


def analysis() -> Analysis:
    turns = (Turn("speaker", TEXT), Turn("listener", "Oh no."), Turn("speaker", "He was 14."))
    even = dict.fromkeys(EMOTIONS, 0.3 / 31)
    return Analysis(
        Dialogue("7", turns),
        emotion=(TurnLabels(0, even | {"sad": 0.7}), TurnLabels(2, even | {"lonely": 0.7})),
        causes=(CauseAnnotation("7", 2, (0,), (Span(0, 2, 20),)),),
        words=(WordScores(2, "lonely", (Span(2, 0, 2, 0.1), Span(2, 7, 9, 0.9))),),
        mechanisms=(Mechanism(1, "exploration", 0, (0.8, 0.1, 0.1)),),
        inferences=(Inference(2, "xReact", ("a <b>", "c", "d")),),
        models={"emotion": "m"},
        missing={"intent": "no model"},
        uncertain=("short & odd",),
    )


def test_an_analysis_at_a_prompt_has_no_long_numbers():
    assert repr(analysis()) == (
        "Analysis(3 turns, the last 'He was 14.'; feels: lonely 70%, afraid 1%, angry 1%; because of: turn 1;"
        " words: 14, He; likely: xReact a <b>, c; without intent)"
    )
    assert repr(analysis().emotion[0]) == "TurnLabels(turn 0: sad 70%, afraid 1%, angry 1%)"
    assert repr(Analysis(Dialogue("", ()))) == "Analysis(no turn)"


def test_an_analysis_in_a_notebook():
    shown = analysis()._repr_html_()
    assert "I <mark>lost &lt;b&gt;my&lt;/b&gt; dog</mark> &amp; my cat." in shown and "xReact a &lt;b&gt;, c" in shown
    assert "<tr><th>shows</th><td>exploration none</td></tr>" in shown and "short &amp; odd" in shown
    assert shown.endswith("<tr><th>without</th><td>intent</td></tr></table>") and "<b>" not in shown
