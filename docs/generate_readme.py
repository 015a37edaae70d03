"""Writes the table of systems in README.md from the records in results/; ``--check`` only says if it is current."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from empatheia.listener.systems import ALWAYS, TOLD, SystemEntry, known_systems

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BEGIN, END = "<!-- systems: written by docs/generate_readme.py -->", "<!-- /systems -->"
TITLES = {
    "accuracy": ("emotion", "{:.1f} %"),
    "ppl_word": ("PPL a word", "{:.1f}"),
    "ppl_item": ("PPL an item", "{:.1f}"),
    "ppl_token": ("PPL a piece", "{:.1f}"),
    "bleu_nltk_4": ("BLEU-4", "{:.2f}"),
    "bleu_avg": ("mean BLEU", "{:.2f}"),
    "p_at_1_100": ("P@1,100", "{:.1f} %"),
}
PAGES = {
    "transformer": "moel",
    "multi_trs": "moel",
    "kemp": "kemp",
    "mk_edg": "kemp",
    "cem": "sabour2022",
    "cause_gated": "gao2021",
    "imagine": "chen2022",
    "rashkin_generation": "rashkin2018",
    "rashkin_retrieval": "rashkin2018",
    "language_model": "../howto/language_model",
}


def pairs(system: SystemEntry) -> str:
    """Our figures, each beside the published one."""
    told = []
    for key in TOLD:
        if key not in TITLES or not (key in system.published or (key in ALWAYS and key in system.ours)):
            continue
        title, form = TITLES[key]
        ours = form.format(system.ours[key]) if key in system.ours else "open"
        told.append(f"{title} {ours}" + (f" / {system.published[key]:g}" if key in system.published else ""))
    return "; ".join(told) or "open"


def row(system: SystemEntry) -> str:
    """One line of the table."""
    page = f"docs/concepts/{PAGES.get(system.name, system.name)}.md".replace("concepts/../", "")
    who = re.sub(r",.* (\d{4})$", r" \1", system.paper) or "any model"
    cells = [
        f"[`{system.name}`](src/{system.file})",
        f"[{who}]({page})",
        f"[`{system.recipe}`](recipes/{system.recipe}.yaml)",
        pairs(system),
    ]
    return f"| {' | '.join(cells)} |"


def table() -> str:
    """The whole table, between its marks."""
    systems = known_systems(ROOT / "results", ROOT / "no runs")
    head = ["| `--system` | after | recipe | ours / published |", "|---|---|---|---|"]
    return "\n".join([BEGIN, *head, *map(row, systems), END])


if __name__ == "__main__":
    before, mark, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        sys.exit(f"{README.name} has no place for the table: {BEGIN} ... {END}")
    text = before + table() + after
    if "--check" not in sys.argv[1:]:
        README.write_text(text, encoding="utf-8")
    elif README.read_text(encoding="utf-8") != text:
        sys.exit(f"{README.name} is not current: run python docs/{Path(__file__).name}")
