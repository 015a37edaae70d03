"""Writes the tables of systems in README.md and docs/systems.md from results/; ``--check`` says if they are current."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from empatheia.documents.document import Content, Table, element, link
from empatheia.documents.markdown import table_lines
from empatheia_research.voices.systems import ALWAYS, TOLD, SystemEntry, known_systems

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "systems.md"
SOURCE = "https://github.com/empatheia/empatheia/blob/main"
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


def paper(system: SystemEntry) -> tuple[str, str]:
    """Who published it, and the page that explains it, from docs/."""
    page = f"concepts/{PAGES.get(system.name, system.name)}.md".replace("concepts/../", "")
    return re.sub(r",.* (\d{4})$", r" \1", system.paper) or "any model", page


def short_row(system: SystemEntry) -> tuple[Content, ...]:
    """A row of README's table."""
    who, page = paper(system)
    return link(element("code", system.name), f"src/{system.file}"), link(who, f"docs/{page}")


def row(system: SystemEntry) -> tuple[Content, ...]:
    """A row of the page's table."""
    who, page = paper(system)
    recipe = link(element("code", system.recipe), f"{SOURCE}/recipes/{system.recipe}.yaml")
    return link(element("code", system.name), f"{SOURCE}/src/{system.file}"), link(who, page), recipe, pairs(system)


def tables() -> dict[Path, list[str]]:
    """Lines of each file's table."""
    systems = known_systems(ROOT / "results", ROOT / "no runs")
    return {
        README: [*table_lines(Table(("`--system`", "after"), [*map(short_row, systems)]))],
        PAGE: [*table_lines(Table(("`--system`", "after", "recipe", "ours / published"), [*map(row, systems)]))],
    }


def written(file: Path, lines: list[str], begin: str = BEGIN, end: str = END) -> str:
    """The file's text with these lines between the marks."""
    before, mark, rest = file.read_text(encoding="utf-8").partition(begin)
    _, last, after = rest.partition(end)
    if not mark or not last:
        sys.exit(f"{file.name} has no place for the table: {begin} ... {end}")
    return before + "\n".join([begin, *lines, end]) + after


if __name__ == "__main__":
    for file, lines in tables().items():
        text = written(file, lines)
        if "--check" not in sys.argv[1:]:
            file.write_text(text, encoding="utf-8")
        elif file.read_text(encoding="utf-8") != text:
            sys.exit(f"{file.name} is not current: run python docs/{Path(__file__).name}")
