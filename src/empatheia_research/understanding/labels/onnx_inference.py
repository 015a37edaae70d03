"""A text classifier whose network runs on ONNX Runtime in place of PyTorch: the same batches, the same labels.

The network is written as a graph once a process, in memory; nothing is kept on disk. Single precision only.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from empatheia.errors import ConfigError, MissingDependencyError
from empatheia_research.understanding.heads import LabelOutput
from empatheia_research.understanding.labels.classifier import TextClassifier
from empatheia_research.understanding.labels.utterance_classifier import UtteranceClassifier

PACKAGES = ("onnxruntime", "onnx")
_OPSET = 18
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def is_installed() -> bool:
    """Whether a network can be written and run."""
    return all(find_spec(name) is not None for name in PACKAGES)


def on_onnx(classifier: TextClassifier, threads: int = 1) -> TextClassifier:
    """The same classifier with its network on ONNX Runtime; probabilities differ in the last digits.

    Args:
        classifier: Its model is an ``UtteranceClassifier`` on the processor, in single precision.
        threads: Of the processor.

    Raises:
        MissingDependencyError: ONNX Runtime is not installed.
        ConfigError: The model is another one.
    """
    if not is_installed():
        raise MissingDependencyError("ONNX Runtime is not installed: pip install 'empatheia[onnx]'")
    model: Any = classifier.model
    if not isinstance(model, UtteranceClassifier):
        raise ConfigError(f"{classifier.name!r} has no encoder to run on ONNX Runtime; use engine torch.")
    network = cast(PreTrainedModel, _Network(model, threads))  # has what a classifier asks of one
    return TextClassifier(network, classifier.reader, classifier.name)


class _Logits(nn.Module):
    """Plain tensors in and out, as the export wants them.

    Args:
        model: Classifies.
    """

    def __init__(self, model: UtteranceClassifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        logits = self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits
        assert logits is not None
        return logits


class _Network:
    """What ``classify_rows`` needs of a model, on ONNX Runtime.

    Args:
        model: Whose weights and configuration it has.
        threads: Of the processor.
    """

    device = torch.device("cpu")

    def __init__(self, model: UtteranceClassifier, threads: int) -> None:
        import onnxruntime

        self.config = model.config
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self._session = onnxruntime.InferenceSession(_graph(model), options, providers=["CPUExecutionProvider"])
        self._names = [one.name for one in self._session.get_inputs()]  # types are left out of an encoder without

    def eval(self) -> _Network:
        return self

    def __call__(self, **batch: Tensor) -> LabelOutput:
        found = self._session.run(None, {name: batch[name].numpy() for name in self._names})
        return LabelOutput(logits=torch.from_numpy(np.asarray(found[0])))


def _graph(model: UtteranceClassifier) -> bytes:
    """The network as ONNX, for batches of any size and length."""
    ids = torch.zeros(2, 8, dtype=torch.long)
    example = (ids, torch.ones(2, 8, dtype=torch.bool), ids)
    both = {0: "batch", 1: "pieces"}
    stream = io.BytesIO()
    export: Callable[..., Any] = torch.onnx.export
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        export(
            _Logits(model.eval()),
            example,
            stream,
            input_names=list(_INPUTS),
            output_names=["logits"],
            dynamic_axes={**dict.fromkeys(_INPUTS, both), "logits": {0: "batch"}},
            opset_version=_OPSET,
            dynamo=False,  # the newer exporter takes five times as long and two packages more
        )
    return stream.getvalue()
