"""The commands of README, tutorial, tour and how-tos are run as they are written, so that no page can rot.

Every page is worked through from its top in a folder of its own that holds the files it names. What would take hours,
asks somebody else or runs until it is stopped is run otherwise or left out: `OTHERWISE`, `LEFT_OUT` and `ENDS_WITH` say
what and why, and ``pytest -s -k otherwise`` prints every such line.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from empatheia_research.corpora.loading import sample_root

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("tutorial", "tour", "analysis"))]
PAGES += sorted((ROOT / "docs" / "howto").glob("*.md"))
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LEAVES_NOTHING = r"empatheia (analyze|care|chat|demo|doctor|reproduce|respond|score)\b"
SOFT = "runs/gao2021/soft/smoke-seed1024"

OTHERWISE = [
    (r"(train .*)--size cpu", r"\1--size smoke", "an hour"),
    (r"--budget 120", "--budget 0", "two hours"),
    (r"^nice (empatheia .*)", r"\1", "another process"),
    (r"analyze chat\.txt --with all", "analyze chat.txt --with emotion,words", "parts whose models take 40 minutes"),
    (r"--dry-run$", "--dry-run --base-url http://localhost:8000/v1 --model NAME", "no endpoint is set"),
]
"""(what of a line, what in its place, what it would take or need)"""
LEFT_OUT = [
    (r"^(make|pip|openssl|curl|torchrun) ", "another program: CI, tests/serve, tests/training/test_distributed.py"),
    (r"empatheia (serve|mcp)\b|study serve", "runs until it is stopped: tests/serve, tests/studies"),
    (
        r"--endpoint|model\.endpoint|--upstream|--folder|judge .*--model NAME$",
        "asks a language model: tests/judging, tests/responders",
    ),
    (r"EMPATHEIA_(API_KEY|KEYS|BASE_URL)=", "a key or an address of the reader's"),
    (
        r"models train understanding$|models train intent,causes",
        "40 minutes a model: tests/listener/test_installing.py",
    ),
    (r"models (export|get) lab-models", "needs such models: tests/training/test_model_archive.py"),
    (r"--classifier intent|plot confusion", "needs such a model: tests/reports/test_charts.py"),
    (r"\bqueue run\b", "the queue's runs: tests/training/test_queue.py"),
    (
        r"annotate runs/|data\.causes_path=mydata",
        "needs the real RECCON corpus: tests/understanding/test_annotating.py",
    ),
    (r"data\.curated=|train-segmenter|--engine dask|--workers", "needs subtitles or Dask: tests/curation"),
    (r"model\.base=FOLDER|causal_lora|zero_shot", "needs a language model: tests/training/test_prompting.py"),
    (r"judge moel\.txt|judge A B", "asks a language model: tests/judging"),
    (r"study bonuses", "needs a study that people were paid for: tests/studies/test_study_command.py"),
]
"""(what of a line, why it is not run and what runs its like)"""
ENDS_WITH = [(r"respond .*--system moel", 3, "no checkpoint: it names the command that makes one")]
"""(what of a line, its exit code, why)"""


def lines_of(page: Path) -> list[str]:
    """Commands of a page in order, comments and continued lines resolved."""
    text = "\n".join(BLOCK.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")
    return [line for row in text.splitlines() if (line := re.split(r"\s+#\s", row)[0].strip())]


def plan(page: Path) -> list[tuple[str, str | None, str]]:
    """(line, how it is run or None, why so) of a page; what leaves nothing behind is run on the first page alone."""
    earlier = {line for other in PAGES[: PAGES.index(page)] for line in lines_of(other)}
    found: list[tuple[str, str | None, str]] = []
    for line in lines_of(page):
        if line in earlier and re.match(_LEAVES_NOTHING, line):
            continue
        if why := next((why for what, why in LEFT_OUT if re.search(what, line)), None):
            found.append((line, None, why))
            continue
        used, reasons = line, []
        for what, other, why in OTHERWISE:
            if re.search(what, used):
                used = re.sub(what, other, used)
                reasons.append(why)
        found.append((line, used, ", ".join(reasons)))
    return found


def python_of(page: Path) -> list[str]:
    """The Python of a page that makes the files its commands read."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """The run that several pages speak of, trained once."""
    from empatheia_research.recipes.recipe import load_recipe
    from empatheia_research.training.runner import run

    runs = tmp_path_factory.mktemp("trained") / "runs"
    assert run(load_recipe("gao2021/soft", size="smoke"), runs, show_progress=False).is_finished
    return runs


@pytest.fixture
def place(tmp_path, monkeypatch, trained):
    """A folder with the files that pages name, self-written and small."""
    monkeypatch.chdir(tmp_path)
    for name in ("EMPATHEIA_DATA", "EMPATHEIA_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    shutil.copytree(trained, "runs")
    for name in (
        "runs/A",
        "runs/B",
        "A",
        "B",
        "runs/gao2021/soft/full-seed1024",
        "runs/default/listener/full-seed1024",
    ):
        shutil.copytree(SOFT, name)
    shutil.copytree(ROOT / "examples", "examples")
    shutil.copy(f"{SOFT}/outputs.jsonl", "outputs.jsonl")
    for name in ("generation_result.txt", "moel.txt"):
        shutil.copy(sample_root() / "replies" / "moel.txt", name)
    for name in ("mine", "gold", "replies"):
        Path(f"{name}.txt").write_text("i am so sorry to hear that .\nthat is great !\nwhat happened ?\n")
    for name in ("theirs", "ours"):
        rows = [{"context": [f"turn {i}"], "reply": f"{name} {i}", "reference": f"ours {i}"} for i in range(4)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("posts.csv").write_text("id,body\n1,I lost my keys again.\n2,We won the match!\n")
    Path("chat.txt").write_text("Anna: I lost my job today.\nBen: Oh no, what happened?\nAnna: They closed the shop.\n")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if any(used for _, used, _ in plan(page))], ids=name_of)
def test_commands_run(page, place, cli, monkeypatch):
    for block in python_of(page) if page.name == "own_data.md" else ():
        exec(compile(block, page.name, "exec"), {})
    for line, used, why in plan(page):
        if used is None:
            continue
        print(f"{line}" + (f"\n  run as: {used} ({why})" if used != line else ""))
        if used.startswith("export "):
            name, _, value = used.removeprefix("export ").partition("=")
            monkeypatch.setenv(name, value.replace("$PWD", str(Path.cwd())))
            continue
        before, _, command = used.rpartition("| ")
        said = (
            subprocess.run(before, shell=True, capture_output=True, text=True, check=True).stdout
            if before
            else "I see.\n"
        )
        words = shlex.split(command)
        assert words[0] == "empatheia", f"{name_of(page)}: {line!r} is no command of ours; put it into LEFT_OUT"
        done = cli(*words[1:], stdin=said)
        expected = next((code for what, code, _ in ENDS_WITH if re.search(what, line)), 0)
        assert done.code == expected, f"{name_of(page)}: {used}\n{done.err[-2000:]}"
        assert (done.out + done.err).strip(), f"{line} printed nothing"


def test_the_list_of_what_is_run_otherwise():
    """Prints it; every entry is needed."""
    told = [(name_of(page), *one) for page in PAGES for one in plan(page)]
    for page, line, used, why in told:
        if used != line:
            print(f"{page}: {line}\n    {'left out' if used is None else f'run as: {used}'} ({why})")
    lines = [line for page in PAGES for line in lines_of(page)]
    stale = [what for what, *_ in (*OTHERWISE, *LEFT_OUT, *ENDS_WITH) if not any(re.search(what, x) for x in lines)]
    assert stale == [] and sum(used is not None for *_, used, _ in told) > 40
