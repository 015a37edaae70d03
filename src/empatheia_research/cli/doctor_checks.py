"""What research adds to ``empatheia doctor``: its models, corpora and other data, and the use of its extras."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from empatheia.cli.checks import REINSTALL, TEXT, Check, DoctorChecks, Trial
from empatheia.errors import MissingResourceError
from empatheia.listener.listener import LISTENERS, Listener
from empatheia.records.dialogue import Turn
from empatheia.resources import corpus_roots, data_root, find_corpus_file, installed_model
from empatheia.resources.catalogue import INDEX, SECOND_LOOK, SMALL, describe_model, known_models, second_look_lacks
from empatheia.resources.manifest import read_json, read_manifest
from empatheia_research.corpora import CORPORA, atomic, facts_of, labelled_texts, lexicons, place_of, senticnet
from empatheia_research.responders import RESPONDERS
from empatheia_research.understanding import UNDERSTANDERS


def _look() -> Iterator[Check]:
    yield _small()
    yield _second_look()
    yield _more_models()
    yield from _corpora()
    yield from _other_data()


def _small() -> Check:
    folder = installed_model(SMALL)
    if folder is None:
        return Check("small responder", "optional", "not here", "point EMPATHEIA_MODELS at models/ of the source")
    entry = describe_model(folder, SMALL)
    if entry.fault:
        return Check("small responder", "broken", entry.fault, f"copy {folder} anew")
    facts = f"{entry.system}, {entry.megabytes:.1f} MB, {entry.licence}"
    return Check("small responder", "ok", f"{entry.title} ({facts})")


def _second_look() -> Check:
    lacks = second_look_lacks()
    if not lacks:
        text = "a small language model reads what is felt a second time, where perception: joined asks for it"
        return Check("second look", "ok", text)
    text = f"{lacks}; with it, and perception: joined, the feeling is right more often"
    fix = 'pip install "empatheia[gguf]"' if "gguf" in lacks else "empatheia models get second_look"
    return Check("second look", "optional", text, fix)


def _more_models() -> Check:
    others = [entry for entry in known_models() if entry.origin != "bundled"]
    places = sorted({str(Path(entry.folder).parent) for entry in others})
    mirror = os.environ.get("EMPATHEIA_MODELS", "").strip()
    return Check(
        "more models",
        "ok" if others else "optional",
        f"{len(others)} in {' and '.join(places) or mirror or 'EMPATHEIA_MODELS (unset)'}",
        "" if others or mirror else "empatheia models train understanding, or EMPATHEIA_MODELS=FOLDER of model folders",
    )


def _corpora() -> Iterator[Check]:
    root = data_root()
    if root is not None and not root.is_dir():
        yield Check("EMPATHEIA_DATA", "missing", f"{root} is not a folder", "point EMPATHEIA_DATA at your corpora")
    for name in CORPORA.names():
        here = place_of(name)
        if here is None:
            yield Check(f"corpus {name}", "optional", "not here", _how_to_get(name))
        else:
            yield Check(f"corpus {name}", "ok", str(here.parent) if facts_of(name).file else "in the package")


def _how_to_get(name: str) -> str:
    """One corpus is fetched; of the others the command says what to do by hand."""
    command = f"empatheia data get {name}"
    return command if name == "empathetic_dialogues" else f"{command} says how"


def _other_data() -> Iterator[Check]:
    """What recipes read besides conversations."""
    atomic_files = [file for files in atomic.SPLITS.values() for file in files]
    for part, folder, files, use, get in (
        (
            "lexicon vader",
            lexicons.FOLDER,
            [lexicons.KNOWN["vader"]],
            "EmpDG, Gao et al.'s eLex",
            lexicons.GET["vader"],
        ),
        ("lexicon warriner", lexicons.FOLDER, [lexicons.KNOWN["warriner"]], "KEMP", lexicons.GET["warriner"]),
        ("ATOMIC 2020", atomic.FOLDER, atomic_files, "CEM and IMAGINE at size cpu", atomic.GET),
    ):
        try:
            yield Check(part, "ok", str(find_corpus_file(folder, files).parent))
        except MissingResourceError:
            yield Check(part, "optional", f"not here; read by {use}", f"EMPATHEIA_DATA/{folder}: from {get}")
    groups = next((root / "20newsgroups" for root in corpus_roots() if (root / "20newsgroups").is_dir()), None)
    remedy = f"EMPATHEIA_DATA/20newsgroups: from {labelled_texts.GET}"
    if groups is not None:
        yield Check("20 Newsgroups", "ok", str(groups))
    else:
        yield Check("20 Newsgroups", "optional", "not here; read by TopicPrepend", remedy)


def _trials() -> Iterator[Trial]:
    """Those that are complete; what others lack is told without using them."""
    for entry in known_models():
        if entry.lacks or (entry.name == SECOND_LOOK and second_look_lacks()):
            continue
        again = REINSTALL if entry.origin == "bundled" else f"copy {entry.folder} anew, or train it again"
        yield Trial(f"use: {entry.name}", lambda folder=Path(entry.folder): _model(folder), again)


def _model(folder: Path) -> str:
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
    from empatheia_research.understanding.vectors.texts import SentenceVectors

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
    "signing": _signing,
    "onnx": _onnx,
}
"""An extra of research to its use."""
CHECKS = DoctorChecks(_look, _trials, USES)
