"""How an :class:`Understanding` shows itself: short at a prompt, marked in a notebook."""

from __future__ import annotations

from empatheia.dialogue import Span, Turn, Understanding
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
