"""Blind ratings of replies: sheets for judges, and the table from their votes.

Each judge gets every context with the replies of all systems, in an order drawn anew for each context, and gives each
reply 1 to 5 for empathy (does it grasp what is felt), relevance (is it about what was said) and fluency, and 1 where it
says the opposite of what is fitting (glad at grief, sorry at joy, absurd), else 0. Systems are never named.

    python benchmarks/blind_ratings.py answer empatheia old.jsonl --contexts contexts.jsonl
    python benchmarks/blind_ratings.py sheets FOLDER --contexts contexts.jsonl --system people=people.jsonl ...
    python benchmarks/blind_ratings.py table FOLDER

Votes are lines ``ITEM<TAB>LETTER<TAB>EMPATHY<TAB>RELEVANCE<TAB>FLUENCY<TAB>OPPOSITE`` in ``FOLDER/votes.JUDGE.tsv``.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path

import numpy as np

SCALES = ("empathy", "relevance", "fluency")


def read(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]


def write(path, rows):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    Path(path).write_text(text, encoding="utf-8")


def answer(model, out, contexts):
    """Replies of a listener: ``empatheia`` (what answers where nobody is named), a YAML file, or a model's name."""
    from empatheia.listener import Listener
    from empatheia.records.dialogue import Dialogue

    listener = Listener.load(model)
    rows = []
    for row in read(contexts):
        reply = listener.respond(Dialogue.of(*row["turns"]), care=False)
        rows.append({"id": row["id"], "reply": reply.text})
    write(out, rows)


def sheets(folder, contexts, systems, seed=11):
    """``items.jsonl`` (contexts and replies by system), ``key.json`` (letters), ``sheet.txt`` (what judges see)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    replies = {name: {row["id"]: row["reply"] for row in read(path)} for name, path in systems}
    draw, key, lines, items = random.Random(seed), {}, [], []
    for row in read(contexts):
        order = [name for name, _ in systems]
        draw.shuffle(order)
        key[str(row["id"])] = dict(zip("abcdefgh", order, strict=False))
        items.append({**row, "replies": {name: replies[name][row["id"]] for name, _ in systems}})
        said = " | ".join(("S: ", "L: ")[i % 2] + " ".join(text.split()) for i, text in enumerate(row["turns"]))
        lines.append(f"## {row['id']}\t{said}")
        lines += [f"{letter}) {replies[name][row['id']]}" for letter, name in key[str(row["id"])].items()]
    write(folder / "items.jsonl", items)
    (folder / "key.json").write_text(json.dumps(key), encoding="utf-8")
    (folder / "sheet.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def votes_of(folder):
    """(item, system) to the judges' rows: empathy, relevance, fluency, opposite."""
    folder = Path(folder)
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    found = defaultdict(dict)
    for path in sorted(folder.glob("votes.*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            item, letter, *numbers = line.split("\t")
            found[item, key[item][letter.strip()]][path.name] = [int(number) for number in numbers]
    return found


def table(folder):
    """Means over items (the judges' mean of each), 95 % bootstrap over items, and how alike the judges vote."""
    found = votes_of(folder)
    systems = sorted({system for _, system in found})
    draw = np.random.default_rng(0)
    print("| replies by | n | " + " | ".join(SCALES) + " | says the opposite |")
    print("|---|---|" + "---|" * (len(SCALES) + 1))
    for system in systems:
        rows = np.array(
            [np.mean(list(own.values()), axis=0) for (_, name), own in sorted(found.items()) if name == system]
        )
        means = rows[draw.integers(0, len(rows), (2000, len(rows)))].mean(1)
        low, high = np.percentile(means, [2.5, 97.5], axis=0)
        cells = [f"{rows[:, k].mean():.2f} [{low[k]:.2f}, {high[k]:.2f}]" for k in range(len(SCALES))]
        cells.append(f"{100 * rows[:, 3].mean():.1f} % [{100 * low[3]:.1f}, {100 * high[3]:.1f}]")
        print(f"| {system} | {len(rows)} | " + " | ".join(cells) + " |")
    judges = sorted({name for own in found.values() for name in own})
    print(f"\n{len(judges)} judges; Pearson correlation of the judges' votes, mean over pairs:")
    for k, scale in enumerate(SCALES):
        columns = np.array([[own[j][k] for j in judges] for own in found.values() if len(own) == len(judges)], float)
        if len(judges) > 1:
            pairs = np.corrcoef(columns.T)[np.triu_indices(len(judges), 1)]
            print(f"  {scale} {pairs.mean():.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("answer")
    one.add_argument("model")
    one.add_argument("out")
    one.add_argument("--contexts", required=True)
    two = commands.add_parser("sheets")
    two.add_argument("folder")
    two.add_argument("--contexts", required=True)
    two.add_argument("--system", action="append", required=True, metavar="NAME=FILE")
    commands.add_parser("table").add_argument("folder")
    asked = parser.parse_args()
    if asked.command == "answer":
        answer(asked.model, asked.out, asked.contexts)
    elif asked.command == "sheets":
        sheets(asked.folder, asked.contexts, [text.split("=", 1) for text in asked.system])
    else:
        table(asked.folder)
