"""What the pages show runs, and what docstrings refer to is shown as code."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_transformers_own_classes_load_a_folder_as_the_page_says(tmp_path, capsys):
    page = (DOCS / "howto" / "generate.md").read_text(encoding="utf-8")
    code = next(block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "AutoModelForSeq2SeqLM" in block)
    (tmp_path / "shown.py").write_text(code, encoding="utf-8")
    runpy.run_path(str(tmp_path / "shown.py"))
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"CauseGated, [\d,]+ parameters, [\d,]+ pieces", first) and second.count(",") >= 4


def test_references_of_docstrings_are_shown_as_code():
    show = runpy.run_path(str(DOCS / "plain_roles.py"))["on_page_content"]
    text = "<p>See :meth:<code>~empatheia.Listener.respond</code> and :func:<code>read</code>, <code>~x</code>.</p>"
    assert show(text, page=None) == "<p>See <code>respond</code> and <code>read</code>, <code>~x</code>.</p>"


def test_formulas_have_indices_and_powers():
    show = runpy.run_path(str(DOCS / "plain_roles.py"))["on_page_content"]
    assert show("<em>V_i = TRS_i(H, E(y_&lt;t))</em>, <code>a_b</code>, a_b") == (
        "<em>V<sub>i</sub> = TRS<sub>i</sub>(H, E(y<sub>&lt;t</sub>))</em>, <code>a_b</code>, a_b"
    )
    assert show("<em>p_{t+1}(c) ~ S1(u)^β e^(−t/T) softmax(η)_i</em>") == (
        "<em>p<sub>t+1</sub>(c) ~ S1(u)<sup>β</sup> e<sup>−t/T</sup> softmax(η)<sub>i</sub></em>"
    )


def test_the_pages_ask_no_address_outside():
    """A theme with ``repo_url`` asks GitHub for the stars of the repository, one with ``font`` asks Google."""
    settings = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert "\nrepo_url:" not in settings and "font: false" in settings
