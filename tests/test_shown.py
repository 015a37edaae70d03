"""How an understanding, a reply and an analysis show themselves: short at a prompt, marked in a notebook."""

from __future__ import annotations

from empatheia.records.analysis import Analysis, Inference, Labels, Mechanism, TurnAnalysis, WordScores
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span, Turn
from empatheia.records.reply import Reply
from empatheia.taxonomy import EMOTIONS

TEXT = "I lost <b>my</b> dog & my cat."


SAD = Labels(dict.fromkeys(EMOTIONS, 0.3 / 31) | {"sad": 0.7})


def perceived(emotion: Labels | None = SAD, **more) -> Analysis:
    newest = TurnAnalysis(0, emotion, causes=(Span(0, 2, 20, 0.9),) if emotion else ())
    return Analysis(Dialogue("", (Turn("speaker", TEXT),)), (newest,), **more)


def test_at_a_prompt():
    shown = repr(perceived(unsure=("emoji are not understood",)))
    assert shown.startswith(f"Analysis({TEXT!r}; feels: sad 70%, ") and "because of: 'lost <b>my</b> dog'" in shown
    assert shown.endswith("uncertain: emoji are not understood)") and len(shown) < 200
    assert repr(perceived(None)) == f"Analysis({TEXT!r})"


def test_in_a_notebook():
    shown = perceived()._repr_html_()
    assert "I <mark>lost &lt;b&gt;my&lt;/b&gt; dog</mark> &amp; my cat." in shown and "sad 70%" in shown
    assert "<b>" not in shown and shown.count("<tr>") == 3


def test_a_reply():
    reply = Reply("That's <hard>.", perceived(), "five steps")
    assert repr(reply).startswith('Reply("That\'s <hard>."; by five steps; to Analysis(')
    shown = reply._repr_html_()
    assert shown.endswith("<tr><th>reply</th><td><b>That&#x27;s &lt;hard&gt;.</b></td></tr></table>")
    assert shown.count("<tr>") == 4


def analysis() -> Analysis:
    turns = (Turn("speaker", TEXT), Turn("listener", "Oh no."), Turn("speaker", "He was 14."))
    even = dict.fromkeys(EMOTIONS, 0.3 / 31)
    return Analysis(
        Dialogue("7", turns),
        (
            TurnAnalysis(0, emotion=Labels(even | {"sad": 0.7})),
            TurnAnalysis(1, mechanisms=(Mechanism(1, "exploration", 0, (0.8, 0.1, 0.1)),)),
            TurnAnalysis(
                2,
                emotion=Labels(even | {"lonely": 0.7}),
                causes=(Span(0, 2, 20),),
                evidence=CauseAnnotation("7", 2, (0,), (Span(0, 2, 20),)),
                scores=WordScores(2, "lonely", (Span(2, 0, 2, 0.1), Span(2, 7, 9, 0.9))),
                inferences=(Inference(2, "xReact", ("a <b>", "c", "d")),),
            ),
        ),
        by={"emotion": "m"},
        missing={"intent": "no model"},
        unsure=("short & odd",),
    )


def test_an_analysis_at_a_prompt_has_no_long_numbers():
    assert repr(analysis()) == (
        "Analysis(3 turns, the last 'He was 14.'; feels: lonely 70%, afraid 1%, angry 1%; because of: turn 1;"
        " words: 14, He; likely: xReact a <b>, c; without intent; uncertain: short & odd)"
    )
    assert repr(analysis().turns[0].emotion) == "Labels(sad 70%, afraid 1%, angry 1%)"
    assert repr(Analysis(Dialogue("", ()))) == "Analysis(no turn)"


def test_an_analysis_in_a_notebook():
    shown = analysis()._repr_html_()
    assert "I <mark>lost &lt;b&gt;my&lt;/b&gt; dog</mark> &amp; my cat." in shown and "xReact a &lt;b&gt;, c" in shown
    assert "<tr><th>shows</th><td>exploration none</td></tr>" in shown and "short &amp; odd" in shown
    assert shown.endswith("<tr><th>without</th><td>intent</td></tr></table>") and "<b>" not in shown
