"""Curation: sentences a second beside a straightforward script, two workers beside one, memory, and the global steps.

The script it is compared with was written for this benchmark, as one would for a few files: the XML as a document tree,
a data frame a file, `predict` of scikit-learn pair by pair. Both do reading, turns, the 5-second rule and cleaning.

    python benchmarks/curation_speed.py                         # throughput of one process
    python benchmarks/curation_speed.py --part workers --n 400  # two workers beside one
    python benchmarks/curation_speed.py --part memory           # 1,000 and 20,000 files
    python benchmarks/curation_speed.py --part global           # 4 million dialogues, 19 million utterances
"""

from __future__ import annotations

import json
import random
import re
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from xml.dom import minidom

import numpy as np
from report import Measurement, arguments, measure

from empatheia_people.curation import global_steps
from empatheia_people.curation.cleaning import Cleaner
from empatheia_people.curation.dialogues import dialogues_of
from empatheia_people.curation.opus import read_opus
from empatheia_people.curation.run import Curation
from empatheia_people.curation.segmenter import PairModel, load_segmenter, turns_of
from empatheia_people.curation.settings import CurationSettings

SENTENCES = 200
"""Of a synthetic film; a real one has about 1,000."""
_SAID = (
    "I you the a to it that is what of me in this and not do know my have on no be just your for we he like so with"
    " are was all get here there out up think if now come right see one about can good want look him they go how got"
)
WORDS = tuple(_SAID.split())
N_DIALOGUES, N_UTTERANCES = 4_010_009, 18_849_440


def film(number: int, n_sentences: int = SENTENCES) -> bytes:
    """A synthetic subtitle file in OPUS's form; its words mean nothing."""
    drawn, time_ms = random.Random(number), 1000
    out = [f'<?xml version="1.0" encoding="utf-8"?>\n<document id="{number}">\n']
    for i in range(1, n_sentences + 1):
        length = drawn.randint(800, 4000)
        words = [drawn.choice(WORDS) for _ in range(drawn.randint(2, 12))]
        tokens = [words[0].capitalize(), *words[1:], drawn.choice("..?!")]
        marks = "".join(f'    <w id="{i}.{j}">{word}</w>\n' for j, word in enumerate(tokens, 1))
        out.append(f'  <s id="{i}">\n    <time id="T{i}S" value="{_stamp(time_ms)}" />\n{marks}')
        out.append(f'    <time id="T{i}E" value="{_stamp(time_ms + length)}" />\n  </s>\n')
        time_ms += length + drawn.choice([40, 80, 200, 500, 1200, 7000])
    meta = f"<conversion><sentences>{n_sentences}</sentences></conversion>"
    out.append(f"  <meta><subtitle><confidence>1.0</confidence></subtitle>{meta}</meta>\n</document>\n")
    return "".join(out).encode()


def _stamp(ms: int) -> str:
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02},{ms % 1000:03}"


def ours(raw: bytes, model: PairModel, cleaner: Cleaner) -> int:
    """Clean dialogues of a file."""
    script = read_opus(raw, "film", "1")
    return sum(len(cleaner.dialogue(one)) for one in dialogues_of(script, turns_of(script, model)))


def naive(raw: bytes, vectorizer: object, model: object) -> int:
    """The straightforward script; 45 lines in one piece, as such scripts are."""
    import pandas

    rows = []
    for sentence in minidom.parseString(raw).getElementsByTagName("s"):
        text = " ".join(word.firstChild.data for word in sentence.getElementsByTagName("w"))
        marks = sentence.getElementsByTagName("time")
        times = {mark.getAttribute("id")[-1]: mark.getAttribute("value") for mark in marks}
        seconds = []
        for key in "SE":
            hours, minutes, rest = times[key].split(":")
            seconds.append(int(hours) * 3600 + int(minutes) * 60 + float(rest.replace(",", ".")))
        rows.append({"text": text, "start": seconds[0], "end": seconds[1]})
    frame = pandas.DataFrame(rows)
    frame["new"] = True
    for i in range(1, len(frame)):
        before, after = frame.iloc[i - 1], frame.iloc[i]
        features = pair_dictionary(before, after)
        frame.loc[i, "new"] = bool(model.predict(vectorizer.transform([features]))[0])  # pyright: ignore
    frame["turn"] = frame["new"].cumsum()
    turns = frame.groupby("turn").agg({"text": " ".join, "start": "first", "end": "last"}).reset_index()
    turns["dialogue"] = (turns["start"] - turns["end"].shift() > 5).cumsum()
    turns["text"] = turns["text"].str.replace(r"\(.*?\)|\[.*?\]", "", regex=True).str.strip()
    kept = turns[turns["text"].apply(lambda text: 2 <= len(text.split()) <= 100 and bool(re.search("[a-zA-Z]", text)))]
    sizes = kept.groupby("dialogue").size()
    return int((sizes >= 2).sum())


def pair_dictionary(before: object, after: object) -> dict[str, float]:
    """Timing, punctuation and words at the border, as names and numbers."""
    first, second = str(before["text"]), str(after["text"])  # pyright: ignore
    a, b = first.lower().split(), second.lower().split()
    features = {"gap": after["start"] - before["end"], f"end={first[-1]}": 1.0, f"upper={second[0].isupper()}": 1.0}  # pyright: ignore
    features |= {f"first{k}={word}": 1.0 for k, word in enumerate(a[:3])}
    features |= {f"last{k}={word}": 1.0 for k, word in enumerate(a[-3:])}
    features |= {f"next_first{k}={word}": 1.0 for k, word in enumerate(b[:3])}
    features |= {f"next_last{k}={word}": 1.0 for k, word in enumerate(b[-3:])}
    features["length"], features["next_length"] = float(len(a)), float(len(b))
    features["shared"] = len(set(a) & set(b)) / max(1, len(set(a) | set(b)))
    return features


def throughput(n: int, n_naive: int) -> list[Measurement]:
    """Sentences of both ways, on the same films."""
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.svm import LinearSVC

    films = [film(number) for number in range(max(n, n_naive))]
    model, cleaner = load_segmenter(), Cleaner()
    drawn = random.Random(0)
    examples = [{f"end={drawn.choice('.?!')}": 1.0, "gap": drawn.random()} for _ in range(100)]
    vectorizer = FeatureHasher()
    fitted = LinearSVC().fit(vectorizer.transform(examples), [i % 2 for i in range(100)])
    ours(films[0], model, cleaner), naive(films[0], vectorizer, fitted)  # warm
    return [
        measure("curation", lambda: [ours(raw, model, cleaner) for raw in films[:n]], n * SENTENCES),
        measure(
            "naive script", lambda: [naive(raw, vectorizer, fitted) for raw in films[:n_naive]], n_naive * SENTENCES
        ),
    ]


def stages(n: int) -> list[Measurement]:
    """Processor time of each step by itself."""
    films = [film(number) for number in range(n)]
    model, cleaner, total = load_segmenter(), Cleaner(), n * SENTENCES
    scripts = [read_opus(raw, "film", "1") for raw in films]
    turns = [turns_of(script, model) for script in scripts]
    cut = [list(dialogues_of(script, own)) for script, own in zip(scripts, turns, strict=True)]
    steps: list[tuple[str, Callable[[], object]]] = [
        ("reading XML", lambda: [read_opus(raw) for raw in films]),
        ("turns", lambda: [turns_of(script, model) for script in scripts]),
        ("5-second rule", lambda: [list(dialogues_of(s, t)) for s, t in zip(scripts, turns, strict=True)]),
        ("cleaning", lambda: [cleaner.dialogue(one) for own in cut for one in own]),
    ]
    return [measure(name, work, total) for name, work in steps]


def films_in(folder: Path, n: int) -> Path:
    """A folder of synthetic films, written once."""
    place = folder / f"films{n}"
    if not place.is_dir():
        for number in range(n):
            path = place / "2000" / str(1_000_000 + number) / f"{number}.xml"
            path.parent.mkdir(parents=True)
            path.write_bytes(film(number))
    return place


def run_films(films: Path, out: Path, scheduler: str | None = None) -> float:
    """Wall seconds of the first stage and the global one."""
    settings = CurationSettings(
        name="speed", inputs=(str(films),), out=str(out), shards=16, workers=0, scheduler=scheduler
    )
    run = Curation(settings)
    run.run("unique")
    return sum(run.seconds.values())


def with_workers(folder: Path, n: int, workers: int) -> dict[str, float]:
    """Worker processes that are started and warm: wall seconds, and processor seconds of each part.

    ``free`` is what the wall clock would say if nothing else ran on the machine and each process had a core: the time
    of the process that hands out the work and of the busiest worker, one after the other.
    """
    from distributed import Client, LocalCluster

    films, few = films_in(folder, n), films_in(folder, 32)
    kind = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": "2GB"}
    with LocalCluster(n_workers=workers, host="127.0.0.1", **kind) as cluster, Client(cluster) as client:
        run_films(few, folder / f"warm-{time.monotonic_ns()}", cluster.scheduler_address)
        before, here = client.run(time.process_time), time.process_time()
        wall = run_films(films, folder / f"out-{time.monotonic_ns()}", cluster.scheduler_address)
        after, here = client.run(time.process_time), time.process_time() - here
    busy = [after[name] - before[name] for name in after]
    return {"wall": wall, "here": here, "workers": sum(busy), "free": here + max(busy)}


def beside(folder: Path, n: int, rounds: int) -> dict[str, float]:
    """One worker and two in turns, so that what else runs on the machine disturbs both alike."""
    one, two = [], []
    for _ in range(rounds):
        one.append(with_workers(folder, n, 1))
        two.append(with_workers(folder, n, 2))
    found: dict[str, float] = {"films": n, "rounds": rounds}
    for name, rows in (("one worker", one), ("two workers", two)):
        found |= {f"{name}, wall s, best": round(min(row["wall"] for row in rows), 1)}
        found |= {f"{name}, processor s": round(min(row["workers"] for row in rows), 1)}
        found |= {f"{name}, handing out, processor s": round(min(row["here"] for row in rows), 2)}
    found["ratio, wall, best of each"] = round(min(r["wall"] for r in one) / min(r["wall"] for r in two), 2)
    found["ratio, processor time"] = round(min(r["free"] for r in one) / min(r["free"] for r in two), 2)
    return found


def memory_of(folder: Path, n: int) -> tuple[float, float]:
    """Largest memory of a process that runs ``n`` films, in MB, and its seconds."""
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (str(folder), n))


def _measured(folder: str, n: int) -> tuple[float, float]:
    seconds = run_films(films_in(Path(folder), n), Path(folder) / f"out-{n}")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, seconds


def simulated(n_dialogues: int, n_utterances: int, memory: int) -> dict[str, float]:
    """The steps that see all dialogues, on random numbers: seconds of each, and the largest memory in MB."""
    drawn = np.random.default_rng(0)
    out: dict[str, float] = {"dialogues": n_dialogues, "utterances": n_utterances}
    order = drawn.integers(0, 1 << 63, n_dialogues, dtype=np.uint64)
    texts = drawn.integers(0, n_dialogues * 4, n_dialogues, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    endings = drawn.zipf(1.3, n_dialogues).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    utterances = drawn.zipf(1.3, n_utterances).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    ranks = drawn.integers(0, 1 << 63, n_utterances, dtype=np.uint64)
    scores = drawn.random(n_dialogues).round(6)
    begun = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal begun
        out[name], begun = round(time.perf_counter() - begun, 2), time.perf_counter()

    keep = global_steps.keep_some(texts, order, 1, memory)
    lap("equal dialogues")
    kept = global_steps.keep_some(endings, order, 1000, memory, keep)
    lap("cap on endings")
    frequent = global_steps.keep_some(utterances, ranks, 1000, memory)
    lap("cap on all utterances")
    threshold, tied = global_steps.top_threshold(scores, 1_000_000)
    lap("most emotional million")
    out |= {"kept": int(keep.sum()), "under cap": int(kept.sum()), "utterances under cap": int(frequent.sum())}
    out |= {"threshold": threshold, "tied": tied}
    out["largest memory, MB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return out


def main() -> None:
    """Prints the part that was asked for."""
    parser = arguments("speed of the curation", n=100, n_naive=3)
    parser.add_argument("--part", choices=("throughput", "workers", "memory", "global"), default="throughput")
    parser.add_argument("--memory", type=int, default=2_000_000_000, help="bytes for sorting, part global")
    parser.add_argument("--rounds", type=int, default=3, help="part workers")
    parser.add_argument("--files", type=int, nargs="+", default=[1000, 20_000], help="part memory")
    options, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.part == "throughput":
            rows = [*stages(options.n), *throughput(options.n, options.naive_n)]
            per_core = [row.n / row.processor_seconds for row in rows]
            found = {row.way: round(rate) for row, rate in zip(rows, per_core, strict=True)}
            found["times the naive script"] = round(per_core[-2] / per_core[-1], 1)
        elif options.part == "workers":
            found = beside(Path(folder), options.n, options.rounds)
        elif options.part == "memory":
            found: dict[str, float] = {}
            for n in options.files:
                peak, seconds = memory_of(Path(folder), n)
                found |= {f"{n:,} films, largest memory, MB": round(peak), f"{n:,} films, s": round(seconds)}
        else:
            found = simulated(N_DIALOGUES, N_UTTERANCES, options.memory)
    if options.json:
        print(json.dumps(found))
        return
    unit = ": sentences a second of processor time" if options.part == "throughput" else ""
    print(f"curation, {options.part}{unit}")
    for name, value in found.items():
        print(f"  {name:<34} {value:>14,}")


if __name__ == "__main__":
    main()
