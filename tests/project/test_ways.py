"""How many files and records a default reply passes: the numbers may only fall."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import empatheia

MOST_FILES, MOST_FORMS = 68, 18
ROOT = f"{Path(empatheia.__file__).parent}/"
FORMS = {
    "Dialogue", "ReadyInput", "Checked", "Affect", "Analysis", "TurnLabels", "Targets", "Request",
    "Perceived", "Scene", "Reflected", "Draft", "_Candidate", "Case", "Row", "Candidate", "Expressed",
    "Reply", "Understood", "Understanding", "Hints", "Explanation",
}  # fmt: skip
"""Records that hold a conversation, or what was found in it, on its way to a reply; of today and of before."""


def test_a_default_reply_passes_few_files_and_forms():
    item = empatheia.Dialogue.of("My dog ran away in the park.")
    empatheia.respond(empatheia.Dialogue.of("I lost my ring yesterday."))  # opens what is opened once
    files: set[str] = set()
    forms: set[str] = set()

    def seen(frame: Any, event: str, _: object) -> None:
        if event != "call":
            return
        if frame.f_code.co_filename.startswith(ROOT):
            files.add(frame.f_code.co_filename)
        if frame.f_code.co_name == "__init__":
            forms.add(type(frame.f_locals.get("self")).__name__)

    sys.setprofile(seen)
    try:
        empatheia.respond(item)
    finally:
        sys.setprofile(None)
    met = forms & FORMS
    assert len(files) <= MOST_FILES, sorted(file.removeprefix(ROOT) for file in files)
    assert len(met) <= MOST_FORMS, sorted(met)
    assert not met & {"Understood", "Understanding", "Hints", "Explanation"}
