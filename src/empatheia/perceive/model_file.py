"""A perception's folder: ``perception.onnx``, ``perception.json``, ``tokenizer.json``; checked before it is trusted."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from empatheia.errors import CheckpointError, MissingDependencyError
from empatheia.reading import Json, read_record
from empatheia.taxonomy import EMOTIONS, SIDES

GRAPH, FACTS, TOKENIZER = "perception.onnx", "perception.json", "tokenizer.json"
BUNDLED = Path(__file__).resolve().parent / "data"
"""The folder of the perception that comes with the package."""
FORMAT, OPSET = 1, 18
MOST_BYTES = 1 << 30
INPUTS = {
    "input_ids": "tensor(int64)",
    "token_type_ids": "tensor(int64)",
    "attention_mask": "tensor(bool)",
    "newest": "tensor(bool)",
    "task": "tensor(int64)",
}
OUTPUTS = ("emotion", "side", "words", "danger")
FEELINGS, DANGER = 0, 1
"""Tasks: which update of the encoder reads."""
PROBE = "I finally passed my driving test, and then my cat got sick."
_NEAR = 1e-3
_REMEDY = "Get the model again, or make it: empatheia package RUN FOLDER --onnx"


@dataclass(frozen=True, kw_only=True)
class PerceptionFacts:
    """Contents of ``perception.json``.

    Attributes:
        format: Version of the folder's form; this release reads 1.
        name: What the model calls itself.
        sha256: Of ``perception.onnx``.
        opset: Of its operators; format 1 has 18.
        weights: ``full``, ``half`` or ``mixed``: see the exporter.
        emotions, sides: Labels in the order of the outputs.
        emotion_temperature, side_temperature: The logits are divided by them; above 0.
        word_threshold: From which probability a word counts as a cause, in [0, 1].
        most_pieces, most_danger_pieces: In a row, for each of the two tasks.
        danger_thresholds: From which probability ``risk`` and ``crisis`` count; empty where the file reads no danger.
        danger_notes: What the danger reader reached on texts it did not learn from.
        probe: Emotion and side probabilities of :data:`PROBE`, which tell a file whose numbers are broken.
        licence: Of the weights, those of the encoder inside included.
        deviation: Largest difference of a probability from the model it was made of, on its texts.
    """

    format: int
    name: str
    sha256: str
    opset: int
    weights: str
    emotions: list[str]
    sides: list[str]
    emotion_temperature: float
    side_temperature: float
    word_threshold: float
    most_pieces: int
    most_danger_pieces: int
    danger_thresholds: dict[str, float]
    danger_notes: dict[str, Any]
    probe: list[float]
    licence: str
    deviation: float


def is_perception(folder: Path) -> bool:
    """Whether a model folder is read by ONNX Runtime."""
    return (folder / FACTS).is_file()


def read_facts(folder: Path) -> PerceptionFacts:
    """``perception.json``, checked.

    Raises:
        CheckpointError: It is missing, of another format, or says something impossible.
    """
    path = folder / FACTS
    try:
        record: Any = read_record(path)
    except (OSError, ValueError) as problem:
        raise CheckpointError(f"{path} cannot be read: {problem}. {_REMEDY}") from None
    if record.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has format {record.get('format')!r}; this release reads {FORMAT}."
            " Upgrade with: pip install --upgrade empatheia"
        )
    names = [one.name for one in fields(PerceptionFacts)]
    if lacking := [name for name in names if name not in record]:
        raise CheckpointError(f"{path} lacks {lacking[0]!r}. {_REMEDY}")
    facts = PerceptionFacts(**{name: record[name] for name in names})
    for name, value, is_fine in (
        ("emotions", facts.emotions, facts.emotions == list(EMOTIONS)),
        ("sides", facts.sides, facts.sides == list(SIDES)),
        ("name", facts.name, isinstance(facts.name, str)),
        ("opset", facts.opset, facts.opset == OPSET),
        ("danger_thresholds", facts.danger_thresholds, _are_limits(facts.danger_thresholds)),
        ("danger_notes", facts.danger_notes, isinstance(facts.danger_notes, dict)),
        ("emotion_temperature", facts.emotion_temperature, _is_above_zero(facts.emotion_temperature)),
        ("side_temperature", facts.side_temperature, _is_above_zero(facts.side_temperature)),
        ("word_threshold", facts.word_threshold, _is_share(facts.word_threshold)),
        ("most_pieces", facts.most_pieces, _is_length(facts.most_pieces)),
        ("most_danger_pieces", facts.most_danger_pieces, _is_length(facts.most_danger_pieces)),
        ("probe", facts.probe, _is_probe(facts.probe)),
    ):
        if not is_fine:
            raise CheckpointError(f"{path} has {name} {str(value)[:60]}, which cannot be. {_REMEDY}")
    return facts


def _is_above_zero(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _is_share(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_length(value: Json) -> bool:
    return isinstance(value, int) and 8 <= value <= 4096


def _are_limits(value: Any) -> bool:
    return value == {} or (
        isinstance(value, dict) and set(value) == {"risk", "crisis"} and all(map(_is_share, value.values()))
    )


def _is_probe(value: Any) -> bool:
    return isinstance(value, list) and len(value) == len(EMOTIONS) + len(SIDES) and all(map(_is_share, value))


def _sha256(path: Path) -> str:
    """Read in pieces: ONNX Runtime reads the file itself, and nobody needs it in memory twice."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise MissingDependencyError("ONNX Runtime is not installed: pip install 'empatheia[onnx]'") from None
    return onnxruntime


class PerceptionFile:
    """An opened ``perception.onnx``.

    Args:
        folder: Holds it and its facts.
        threads: Of the processor.

    Raises:
        CheckpointError: A file is missing, truncated, foreign, or of a newer format.
        MissingDependencyError: ONNX Runtime is not installed.
    """

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.facts = read_facts(folder)
        path = folder / GRAPH
        try:
            size = path.stat().st_size
            checksum = _sha256(path) if size <= MOST_BYTES else ""
        except OSError as problem:
            raise CheckpointError(f"cannot read {path}: {problem.strerror}. {_REMEDY}") from None
        if checksum != self.facts.sha256:
            raise CheckpointError(
                f"{path} ({size:,} bytes) is not the file that {FACTS} describes: it is damaged or another. {_REMEDY}"
            )
        onnxruntime = _runtime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4  # what is wrong is raised
        options.enable_cpu_mem_arena = False
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as problem:  # the library's own errors share no public base
            raise CheckpointError(f"ONNX Runtime cannot open {path}: {str(problem)[:200]}. {_REMEDY}") from None
        self._check_form(path)
        self._run_options = onnxruntime.RunOptions()
        self._run_options.only_execute_path_to_fetches = True

    def _check_form(self, path: Path) -> None:
        inputs = {one.name: one.type for one in self._session.get_inputs()}
        if inputs != INPUTS:
            raise CheckpointError(f"{path} reads {inputs}; a perception reads {INPUTS}. {_REMEDY}")
        own = [one.name for one in self._session.get_outputs()]
        if own != list(OUTPUTS[: len(own)]) or len(own) != 3 + bool(self.facts.danger_thresholds):
            raise CheckpointError(
                f"{path} gives {own}; a perception gives {list(OUTPUTS)}, without danger the first 3. {_REMEDY}"
            )

    def run(self, batch: dict[str, np.ndarray], wanted: tuple[str, ...], task: int) -> list[np.ndarray]:
        """Logits.

        Args:
            batch: From :func:`empatheia.perceive.pieces.collate`.
            wanted: Of :data:`OUTPUTS`.
            task: :data:`FEELINGS` or :data:`DANGER`.
        """
        fed = {**batch, "task": np.asarray(task, np.int64)}
        found: Any = self._session.run(list(wanted), fed, self._run_options)
        return list(found)

    def check_probe(self, found: np.ndarray) -> None:
        """Compares probabilities of :data:`PROBE` with those it was made with.

        Raises:
            CheckpointError: They differ, or are no numbers.
        """
        if not np.allclose(found, self.facts.probe, rtol=0, atol=_NEAR):
            raise CheckpointError(
                f"perception {self.facts.name!r} reads its probe text otherwise than when it was made: its weights are"
                f" broken. {_REMEDY}"
            )
