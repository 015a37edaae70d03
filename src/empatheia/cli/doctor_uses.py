"""Each installed part loaded and used once, for ``empatheia doctor``: a part may be there and not work."""

from __future__ import annotations

import importlib
import io
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from empatheia.care import assess
from empatheia.records.dialogue import Turn
from empatheia.resources.catalogue import INDEX, SECOND_LOOK, known_models, second_look_lacks
from empatheia.resources.manifest import read_json, read_manifest
from empatheia.resources.quiet import quiet_loading
from empatheia_research.corpora import senticnet
from empatheia_research.responders import RESPONDERS
from empatheia_research.understanding import UNDERSTANDERS
from empatheia_research.understanding.vectors.texts import SentenceVectors

TEXT = "I lost my keys and I am so sad about it."
REINSTALL = "pip install --force-reinstall --no-deps . in the package's source folder"


@dataclass(frozen=True)
class Trial:
    """One use.

    Attributes:
        part: What is used.
        use: Uses it and says in a few words what came of it.
        remedy: The command that mends it where the error itself names none.
    """

    part: str
    use: Callable[[], object]
    remedy: str = REINSTALL


def tried(trial: Trial) -> tuple[bool, str]:
    """Whether it works, and what came of it in one line."""
    start = time.perf_counter()
    try:
        with quiet_loading():
            came = trial.use()
    except Exception as error:  # whatever is broken is told, and the next part is tried
        return False, f"does not work: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return True, f"works ({time.perf_counter() - start:.1f} s): {came}"


def trials(extras: Mapping[str, bool]) -> Iterator[Trial]:
    """All that is installed, one after another.

    Args:
        extras: Name of an extra to whether its packages are here.
    """
    yield Trial("use: reply", _reply)
    yield Trial("use: care", _care)
    yield from _models()
    for extra, is_here in extras.items():
        if is_here and extra in USES:
            yield Trial(f"use: extra {extra}", USES[extra], f"pip install --upgrade 'empatheia[{extra}]'")


def _reply() -> str:
    from empatheia.listener.listener import respond

    reply = respond(TEXT)
    emotion = reply.analysis.newest.emotion
    return f"{emotion.label if emotion else 'nothing named'}, {reply.text!r}"


def _care() -> str:
    found = assess("I want to kill myself tonight.")
    if found.level != "crisis":
        raise RuntimeError(f"a text of somebody who wants to die is of level {found.level!r}")
    return "a crisis is told"


def _models() -> Iterator[Trial]:
    """Those that are complete; what others lack is told without using them."""
    for entry in known_models():
        if entry.lacks or (entry.name == SECOND_LOOK and second_look_lacks()):
            continue
        again = REINSTALL if entry.origin == "bundled" else f"copy {entry.folder} anew, or train it again"
        yield Trial(f"use: {entry.name}", lambda folder=Path(entry.folder): _model(folder), again)


def _model(folder: Path) -> str:
    from empatheia.listener.listener import LISTENERS, Listener
    from empatheia_research.understanding.affect.states import StatesOfTurns
    from empatheia_research.understanding.labels.classifier import SYSTEMS, TextClassifier

    if read_json(folder / "empatheia.json").get("kind") == INDEX:
        from empatheia_research.understanding.inferences.index import read_meta

        return f"an index of {len(read_meta(folder))} facts"
    system = read_manifest(folder).system
    if (folder / "config.json").is_file() and read_json(folder / "config.json").get("form") == "endpoint":
        return "answers over the network; not asked"
    if system in RESPONDERS or system in LISTENERS:
        return repr(Listener.load(folder).respond(TEXT).text)
    if system == "affect_states":
        return f"{StatesOfTurns.load(folder).probabilities([(Turn('speaker', TEXT),)])[0].shape[1]} emotions"
    if system in SYSTEMS:
        return f"{TextClassifier.load(folder).classify_texts([TEXT]).shape[1]} labels"
    UNDERSTANDERS.get(system).open(folder)
    return "loaded"


def _plots() -> str:
    from matplotlib.figure import Figure

    Figure().savefig(drawn := io.BytesIO())
    return f"a picture of {len(drawn.getvalue()):,} bytes"


def _encoder() -> str:
    from empatheia_research.care.encoder import UPDATES, EncoderClassifier

    vectors = SentenceVectors.load("minilm").encode([TEXT])
    if UPDATES.is_file():
        EncoderClassifier.load().probabilities([TEXT.lower()])
    return f"vectors of {vectors.shape[1]} numbers, and care's second classifier as it was trained"


def _search() -> str:
    import faiss
    import numpy as np

    rows = np.eye(4, dtype=np.float32)
    index = faiss.IndexFlatIP(4)
    index.add(rows)
    return f"row {index.search(rows[:1], 1)[1][0, 0]} is nearest to row 0"


def _lora() -> str:
    from peft import LoraConfig, inject_adapter_in_model
    from torch import nn

    model = inject_adapter_in_model(LoraConfig(r=1, target_modules=["0"]), nn.Sequential(nn.Linear(2, 2)))
    return f"{sum('lora_' in name for name, _ in model.named_parameters())} adapters"


def _gguf() -> str:
    import numpy as np
    from gguf.constants import GGMLQuantizationType
    from gguf.quants import dequantize, quantize

    kind = GGMLQuantizationType.Q4_1
    return f"{dequantize(quantize(np.ones((1, 32), np.float32), kind), kind).size} numbers expanded"


def _signing() -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    key.public_key().verify(key.sign(b"x"), b"x")
    return "signed and verified"


def _onnx() -> str:
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {"x": np.ones(1, np.float32)})
    return f"-1 is {np.asarray(answer).item():g}"


def _topics() -> str:
    from sklearn.linear_model import LogisticRegression

    return f"{LogisticRegression().fit([[0.0], [1.0]], [0, 1]).predict([[1.0]])[0]} is 1"


def _serve() -> str:
    import fastapi

    importlib.import_module("empatheia.serve.run")
    return f"fastapi of OpenAPI {fastapi.FastAPI().openapi()['openapi']}"


def _study() -> str:
    import sqlalchemy

    importlib.import_module("empatheia_people.studies.collecting")
    with sqlalchemy.create_engine("sqlite://").connect() as connection:
        return f"a database says {connection.scalar(sqlalchemy.text('select 1'))}"


def _curate() -> str:
    import dask
    import pyarrow
    import pysubs2

    n_lines = len(pysubs2.SSAFile.from_string("1\n00:00:01,000 --> 00:00:02,000\nHi.\n"))
    total = dask.delayed(sum)([n_lines, 1]).compute(scheduler="synchronous")
    return f"{total} rows of {pyarrow.table({'a': [1, 2]}).num_rows}"


def _mcp() -> str:
    importlib.import_module("empatheia.serve.tools")
    return "imported"


def _concepts() -> str:
    return f"{sum(1 for _ in senticnet.read_related()):,} related concepts"


USES: Mapping[str, Callable[[], str]] = {
    "plots": _plots,
    "encoder": _encoder,
    "search": _search,
    "concepts": _concepts,
    "lora": _lora,
    "gguf": _gguf,
    "topics": _topics,
    "serve": _serve,
    "study": _study,
    "signing": _signing,
    "onnx": _onnx,
    "curate": _curate,
    "mcp": _mcp,
}
"""An extra to its use; those for making the package itself are left out."""
