"""A whole curation: which shards have to be made, by whom, and the two steps in between that see all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from empatheia.errors import DataError, UnreadableFilesError
from empatheia.reading import UnreadableError, read_record
from empatheia.writing import hold_file
from empatheia_people.curation import global_steps
from empatheia_people.curation.labelling import engine_of
from empatheia_people.curation.settings import CurationSettings, load_settings, memory_bytes
from empatheia_people.curation.shards import (
    check_room,
    code_hash,
    column_of,
    finish,
    is_made,
    outputs_mark,
    rows_of,
    settings_hash,
    whole_file,
    write_json,
)
from empatheia_people.curation.sources import Found, Source, find_sources, shard_of
from empatheia_people.curation.stages import Task, run_task
from empatheia_people.curation.summary import MOST_LISTED, summary, unreadable
from empatheia_people.curation.workers import DiedError, Workers, started
from empatheia_research.shipped import shipped_path

STAGES = ("dialogues", "unique", "labelled", "rank", "corpus")
SETTINGS_FILE, INVENTORY_FILE, RESULT_FILE = "curation.yaml", "inventory.json", "corpus.json"
UNREADABLE_FILE = "unreadable.json"
_LEAST_ROOM = 10 << 20


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is.

    Attributes:
        stage: Name of it.
        done: Shards that are there.
        total: Shards.
        seconds_left: From the share of the bytes that was done since it began, None if nothing was.
    """

    stage: str
    done: int
    total: int
    seconds_left: float | None


class Curation:
    """The stages of a run, each made where it is missing.

    Args:
        settings: Of the run.
        say: Told what a person should know.
        tell: Told how far it is.
    """

    def __init__(
        self,
        settings: CurationSettings,
        say: Callable[[str], None] = lambda text: None,
        tell: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self.settings = settings
        self.folder = settings.folder
        self.say, self.tell = say, tell
        self.seconds: dict[str, float] = {}

    def run(self, only: str | None = None) -> dict[str, Any]:
        """Makes everything that is not there, or all up to one stage.

        Returns:
            What ``corpus.json`` holds, or after ``only`` another stage: nothing.

        Raises:
            DataError: There is nothing to read, another process is at work, or shards failed.
            OSError: The disk is full, a folder may not be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        check_room(self.folder, _LEAST_ROOM)
        with ExitStack() as stack:
            stack.enter_context(_held(self.folder))
            for half in self.folder.rglob("shard-*.part"):  # of a run that was killed
                half.unlink(missing_ok=True)
            self._note_settings()
            found = find_sources(map(shipped_path, self.settings.inputs))
            self._note_inventory(found)
            own = self.settings
            workers = stack.enter_context(started(own.workers, own.memory, own.scheduler, self.say))
            made: dict[str, list[dict[str, Any]]] = {}
            for stage in STAGES:
                begun = time.monotonic()
                getattr(self, f"_{stage}")(workers, found, made)
                self.seconds[stage] = round(time.monotonic() - begun, 3)
                if stage == only:
                    return {}
        return self._summed(found, made)

    # -- stages ----------------------------------------------------------------------------------------------

    def _dialogues(self, workers: Workers, found: Found, made: dict[str, list[dict[str, Any]]]) -> None:
        own = self.settings
        shards: list[list[Source]] = [[] for _ in range(own.shards)]
        for source in found.sources:
            shards[shard_of(source.movie, own.shards)].append(source)
        told = own.model_dump(mode="json", include={"read", "segment", "dialogues", "clean"})
        told["clean"] = {name: value for name, value in told["clean"].items() if name not in ("duplicates", "cap")}
        told["read"].pop("most_unreadable")
        mark = settings_hash("dialogues", code_hash(), told, _segmenter_mark(own.segment.segmenter))
        tasks = [
            Task(
                "dialogues",
                number,
                settings_hash(mark, [source.mark for source in sources]),
                own,
                str(self._path("dialogues", number)),
                sources=tuple(sources),
                weight=1 + sum(source.size for source in sources),
            )
            for number, sources in enumerate(shards)
        ]
        made["dialogues"] = self._made(workers, tasks)
        self._check_readable(found, made["dialogues"])

    def _check_readable(self, found: Found, manifests: Sequence[dict[str, Any]]) -> None:
        """Ends the run before the costly stages if the inputs are not what they should be.

        Raises:
            UnreadableFilesError: More files than allowed could not be read.
        """
        path, most = self.folder / UNREADABLE_FILE, self.settings.read.most_unreadable
        n_bad, problems = unreadable(manifests, found)
        n_files = len(found.sources) + len(found.problems)
        if n_bad <= most * n_files:
            path.unlink(missing_ok=True)
            return
        write_json(path, {"files": n_files, "unreadable": n_bad, "problems": problems})
        raise UnreadableFilesError(
            f"{n_bad:,} of {n_files:,} files could not be read ({n_bad / n_files:.1%}, read.most_unreadable allows"
            f" {most:.1%}), first {problems[0][0]}: {problems[0][1]}. {path} lists them."
            f" Fix or remove them, or allow more: --set read.most_unreadable={-(-1000 * n_bad // n_files) / 1000}"
        )

    def _unique(self, workers: Workers, found: Found, made: dict[str, list[dict[str, Any]]]) -> None:
        """Which dialogues stay: at most one of equal ones, at most ``cap`` with one ending."""
        clean, n = self.settings.clean, self.settings.shards
        key = settings_hash("unique", code_hash(), clean.duplicates, clean.cap, outputs_mark(made["dialogues"]))
        paths = [self._path("dialogues", number) for number in range(n)]
        masks = [self._path("unique", number, ".npy") for number in range(n)]
        manifests = [is_made(mask, key) for mask in masks]
        if all(one is not None for one in manifests):
            made["unique"] = [one for one in manifests if one is not None]
            self.tell(Progress("unique", n, n, None))
            return
        self.tell(Progress("unique", 0, n, None))
        order = [column_of(path, "order_hash") for path in paths]
        sizes = [len(one) for one in order]
        ranks = np.concatenate(order).astype(np.uint64)
        memory = memory_bytes(self.settings.memory) // 2
        keep = np.ones(len(ranks), bool)
        counts = {"dialogues": len(ranks), "duplicates": 0, "over_cap": 0}
        if clean.duplicates:
            keep = global_steps.keep_some(self._column(paths, "text_hash"), ranks, 1, memory)
            counts["duplicates"] = int((~keep).sum())
        if clean.cap is not None:
            kept = global_steps.keep_some(self._column(paths, "ending_hash"), ranks, clean.cap, memory, keep)
            counts["over_cap"] = int(keep.sum() - kept.sum())
            keep = kept
        parts = np.split(keep, np.cumsum(sizes)[:-1])
        made["unique"] = []
        for mask, part in zip(masks, parts, strict=True):
            with whole_file(mask) as temporary, temporary.open("wb") as stream:
                np.save(stream, part)
            made["unique"].append(finish(mask, key, {"counts": counts, "kept": int(part.sum())}))
        self.tell(Progress("unique", n, n, None))

    def _column(self, paths: Sequence[Path], name: str) -> np.ndarray:
        return np.concatenate([column_of(path, name) for path in paths]).astype(np.uint64)

    def _labelled(self, workers: Workers, found: Found, made: dict[str, list[dict[str, Any]]]) -> None:
        own = self.settings
        label = own.label.model_copy(update={"engine": engine_of(own.label)})
        own = own.model_copy(update={"label": label})
        mark = settings_hash(
            "labelled", code_hash(), own.label.model_dump(mode="json"), _model_mark(own.label.classifier)
        )
        tasks = [
            Task(
                "labelled",
                number,
                settings_hash(mark, made["dialogues"][number]["sha256"], made["unique"][number]["sha256"]),
                own,
                str(self._path("labelled", number)),
                (str(self._path("dialogues", number)), str(self._path("unique", number, ".npy"))),
                weight=1 + made["unique"][number]["kept"],
            )
            for number in range(own.shards)
        ]
        made["labelled"] = self._made(workers, tasks)

    def _rank(self, workers: Workers, found: Found, made: dict[str, list[dict[str, Any]]]) -> None:
        """The score of the last of the most emotional dialogues, and who of those that share it is among them."""
        own, path = self.settings, self.folder / "rank.json"
        key = settings_hash("rank", code_hash(), own.rank.top, outputs_mark(made["labelled"]))
        try:
            record = read_record(path)
        except (OSError, UnreadableError):
            record = {}
        if record.get("key") != key:
            record = {"key": key, **(self._ranked() if own.label.classifier is not None else {"threshold": None})}
            write_json(path, record)
        made["rank"] = [record]
        self.tell(Progress("rank", 1, 1, None))

    def _ranked(self) -> dict[str, Any]:
        paths = [self._path("labelled", number) for number in range(self.settings.shards)]
        scores = np.concatenate([column_of(path, "emotionality").astype(np.float64) for path in paths])
        wanted = global_steps.wanted_number(self.settings.rank.top, len(scores))
        threshold, n_tied = global_steps.top_threshold(scores, wanted)
        if wanted == 0:
            return {"threshold": 2.0, "tied": [], "top": 0, "of": len(scores)}
        tied = sorted(
            row["key"]
            for path in paths
            for row in rows_of(path, ["key", "emotionality"])
            if row["emotionality"] == threshold
        )[:n_tied]
        return {"threshold": threshold, "tied": tied, "top": wanted, "of": len(scores)}

    def _corpus(self, workers: Workers, found: Found, made: dict[str, list[dict[str, Any]]]) -> None:
        own, rank = self.settings, made["rank"][0]
        mark = settings_hash("corpus", code_hash(), own.split.model_dump(mode="json"), rank["key"])
        tasks = [
            Task(
                "corpus",
                number,
                settings_hash(mark, made["labelled"][number]["sha256"]),
                own,
                str(self._path("corpus", number)),
                (str(self._path("labelled", number)),),
                facts={"threshold": rank["threshold"], "tied": rank.get("tied", ())},
                weight=1 + made["unique"][number]["kept"],
            )
            for number in range(own.shards)
        ]
        made["corpus"] = self._made(workers, tasks)

    # -- work ------------------------------------------------------------------------------------------------

    def _made(self, workers: Workers, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        """The manifests of all tasks, in order; those that are there and fit are not done again.

        Raises:
            DataError: The workers of some died.
        """
        out = [is_made(Path(task.out), task.key) for task in tasks]
        left = [place for place, one in enumerate(out) if one is None]
        left.sort(key=lambda place: -tasks[place].weight)  # the largest first: all workers end at about the same time
        stage, n, begun = tasks[0].stage, len(tasks), time.monotonic()
        to_do = sum(tasks[place].weight for place in left)
        done = 0
        failed: list[tuple[int, str]] = []
        self.tell(Progress(stage, n - len(left), n, None))
        for count, (position, result) in enumerate(workers.results(run_task, [tasks[i] for i in left]), 1):
            place = left[position]
            if isinstance(result, DiedError):
                failed.append((tasks[place].number, str(result)))
            else:
                out[place] = result
            done += tasks[place].weight
            passed = time.monotonic() - begun
            self.tell(Progress(stage, n - len(left) + count, n, passed * (to_do - done) / done))
        if failed:
            raise DataError(
                f"stage {stage}: {len(failed)} of {n} shards failed, first shard {failed[0][0]}: {failed[0][1]}."
                f" Give more with `--set memory=`, or cut finer with `--set shards=`, and resume: {self._resume}"
            )
        return [one for one in out if one is not None]

    @property
    def _resume(self) -> str:
        return f"empatheia curate resume {self.folder}"

    def _path(self, stage: str, number: int, suffix: str = ".parquet") -> Path:
        return self.folder / stage / f"shard-{number:05}{suffix}"

    def _note_settings(self) -> None:
        """Keeps the settings beside the result; shards of another number of them are removed."""
        path = self.folder / SETTINGS_FILE
        if path.is_file() and (old := load_settings(path)).shards != self.settings.shards:
            for number in range(self.settings.shards, old.shards):
                for stage in ("dialogues", "unique", "labelled", "corpus"):
                    for leftover in (self.folder / stage).rglob(f"shard-{number:05}.*"):
                        leftover.unlink()
        absolute = replace_inputs(self.settings)
        with whole_file(path) as part:
            part.write_text(absolute.to_yaml(), encoding="utf-8")

    def _note_inventory(self, found: Found) -> None:
        kinds: dict[str, int] = {}
        for source in found.sources:
            kinds[source.kind] = kinds.get(source.kind, 0) + 1
        record = {
            "files": len(found.sources),
            "kinds": kinds,
            "other": found.n_other,
            "n_problems": len(found.problems),
            "problems": found.problems[:MOST_LISTED],
        }
        write_json(self.folder / INVENTORY_FILE, record)

    def _summed(self, found: Found, made: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
        """The counts of all stages, in ``corpus.json``."""
        record = summary(made, found)
        record |= {"name": self.settings.name, "code": code_hash(), "seconds": self.seconds}
        write_json(self.folder / RESULT_FILE, record)
        if not record["dialogues"].get("clean_dialogues"):
            self.say("warning: no dialogue is left; `empatheia curate report` shows which step dropped them")
        return record


def replace_inputs(settings: CurationSettings) -> CurationSettings:
    """With whole paths, so that a run can be resumed from anywhere."""
    inputs = tuple(str(shipped_path(one).expanduser().absolute()) for one in settings.inputs)
    return settings.model_copy(update={"inputs": inputs, "out": str(settings.folder.absolute())})


def _segmenter_mark(place: str) -> str:
    path = Path(place) / "weights.safetensors"
    if not path.is_file():
        return place
    from empatheia.resources import file_sha256

    return file_sha256(path)


def _model_mark(place: str | None) -> str:
    """What tells a model from another of the same name."""
    if place is None:
        return ""
    from empatheia.resources import file_sha256, resolve_model

    folder = resolve_model(place)
    return settings_hash([file_sha256(path) for path in sorted(folder.glob("*.safetensors"))])


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keeps a second run out of the folder.

    Raises:
        DataError: One is at work.
    """
    path = folder / ".lock"
    with path.open("ab") as stream:
        hold_file(stream, path)
        yield


def stage_states(folder: Path) -> list[tuple[str, int, int]]:
    """Stage, shards that are there, shards; from the files alone.

    Raises:
        DataError: It is no folder of a curation.
    """
    settings = settings_of(folder)
    n = settings.shards
    out = []
    for stage in STAGES:
        if stage == "rank":
            out.append((stage, int((folder / "rank.json").is_file()), 1))
        else:
            out.append((stage, len(list((folder / stage).glob("shard-*.json"))), n))
    return out


def settings_of(folder: Path) -> CurationSettings:
    """Of a run's folder.

    Raises:
        DataError: It is no such folder.
    """
    path = folder / SETTINGS_FILE
    if not path.is_file():
        raise DataError(
            f"{folder} is not a folder of a curation (no {SETTINGS_FILE}). `empatheia curate run` makes one."
        )
    return load_settings(path).model_copy(update={"out": str(folder)})
