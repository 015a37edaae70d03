"""The classes that ``run.py`` gives to pytest: one a responder, with a tiny configuration of its contract cases."""

from __future__ import annotations

import contextlib
import copy
import inspect
import tomllib
import unittest
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from common_tests.test_configuration_common import ConfigTester
from common_tests.test_modeling_common import ModelTesterMixin
from contract import SIZES, Case, all_cases

from empatheia_research.responders.seq2seq import Seq2SeqResponder

UNSUPPORTED = tomllib.loads((Path(__file__).parent / "unsupported.toml").read_text(encoding="utf-8"))


def first_cases() -> dict[str, Case]:
    """The first case of each system, and the first with a pretrained encoder."""
    found: dict[str, Case] = {}
    for case in all_cases().values():
        kind = " pretrained" if case.fields.get("encoder_config") else ""
        found.setdefault(case.system + kind, case)
    return found


class Tiny:
    """What the mixin calls a model tester."""

    def __init__(self, parent: unittest.TestCase, case: Case) -> None:
        self.parent = parent
        self.case = case
        self.is_training = True
        self.batch_size, self.seq_length, self.encoder_seq_length, self.decoder_seq_length = 3, 11, 11, 7
        self.hidden_size, self.num_hidden_layers, self.num_attention_heads = 24, 2, 2

    def prepare_config_and_inputs_for_common(self) -> tuple[Any, dict[str, Any]]:
        """A configuration, and inputs with the reply so far."""
        batch = self.case.batch()
        reply = batch["labels"].clamp_min(0).roll(1, 1)
        reply[:, 0] = 4
        return copy.deepcopy(self.case.build().config), {**self.case.inputs(batch), "decoder_input_ids": reply}


class _Common(ModelTesterMixin):
    case: Case
    test_torch_exportable = False
    has_attentions = True
    is_encoder_decoder = True

    def setUp(self) -> None:
        torch.manual_seed(0)
        self.model_tester = Tiny(self, self.case)
        self.n_pieces = SIZES["vocab_size"]
        fields = {**SIZES, **self.case.fields}
        self.config_tester = ConfigTester(
            self, config_class=type(self.case.build().config), common_properties=["hidden_size"], **fields
        )

    def _prepare_for_class(self, inputs_dict: Any, model_class: Any, return_labels: bool = False) -> dict[str, Any]:
        prepared = {name: self._fitting(name, value) for name, value in copy.deepcopy(inputs_dict).items()}
        if return_labels:
            prepared["labels"] = self.case.batch()["labels"]
        return prepared

    def _fitting(self, name: str, value: Any) -> Any:
        """Side inputs for as many pieces as the model has; the mixin fits those that it knows itself."""
        if name == "emotion_vocabulary":  # one entry a piece
            return torch.arange(self.n_pieces) % 3 == 0
        is_of_pieces = name.endswith("ids") and name not in ("input_ids", "decoder_input_ids")
        return value.clamp(max=self.n_pieces - 1) if is_of_pieces else value

    def test_config(self) -> None:
        self.config_tester.run_common_tests()

    def test_batching_equivalence(self, atol: float = 1e-5, rtol: float = 1e-5) -> None:
        """Of what is given; the mixin asks for hidden states, too."""
        with mock.patch.object(Seq2SeqResponder, "_check_asked"):
            super().test_batching_equivalence(atol, rtol)

    def test_resize_tokens_embeddings(self) -> None:
        with self._counted():
            super().test_resize_tokens_embeddings()

    def test_resize_embeddings_untied(self) -> None:
        with self._counted():
            super().test_resize_embeddings_untied()

    @contextlib.contextmanager
    def _counted(self) -> Any:
        """Keeps how many pieces the model has that was resized last."""
        resize = Seq2SeqResponder.resize_token_embeddings

        def counting(model: Any, *args: Any, **kwargs: Any) -> Any:
            table = resize(model, *args, **kwargs)
            self.n_pieces = table.num_embeddings
            return table

        with mock.patch.object(Seq2SeqResponder, "resize_token_embeddings", counting):
            yield


def _reason(system: str, test: str) -> str | None:
    for entry in UNSUPPORTED["unsupported"]:
        is_of_system = any(fnmatch(system, name) for name in entry.get("systems", ["*"]))
        if is_of_system and any(fnmatch(test, name) for name in entry["tests"]):
            return entry["reason"]
    return None


def _listed(function: Any, reason: str) -> Any:
    """Of a test on the list: skipped if it fails, an error if it passes."""

    def test(self: Any) -> None:
        self.subTest = lambda *args, **kwargs: contextlib.nullcontext()  # what fails in one fails the test
        try:
            function(self)
        except unittest.SkipTest:
            raise
        except Exception:
            pytest.skip(f"on the list: {reason}")
        self.fail("it passes: take it off unsupported.toml")

    return test


def _class_of(system: str, case: Case) -> type:
    body: dict[str, Any] = {"case": case, "all_model_classes": (type(case.build()),)}
    made = type("Test_" + system.replace(" ", "_"), (_Common, unittest.TestCase), body)
    for test, function in inspect.getmembers(made, inspect.isfunction):
        if test.startswith("test_") and (reason := _reason(system, test)):
            setattr(made, test, _listed(function, reason))
    return made


globals().update({made.__name__: made for made in (_class_of(*item) for item in first_cases().items())})
