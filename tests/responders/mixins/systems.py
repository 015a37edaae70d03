"""The classes that ``run.py`` gives to pytest: one a responder, with a tiny configuration of its contract cases."""

from __future__ import annotations

import copy
import inspect
import tomllib
import unittest
from pathlib import Path
from typing import Any

import pytest
import torch
from common_tests.test_configuration_common import ConfigTester
from common_tests.test_modeling_common import ModelTesterMixin
from contract import SIZES, Case, all_cases

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
        known = self.case.inputs(batch)
        reply = batch["labels"].clamp_min(0).roll(1, 1)
        reply[:, 0] = 4
        return copy.deepcopy(self.case.build().config), {**known, "decoder_input_ids": reply}


class _Common(ModelTesterMixin):
    case: Case
    test_torch_exportable = False
    has_attentions = True
    is_encoder_decoder = True

    def setUp(self) -> None:
        torch.manual_seed(0)
        self.model_tester = Tiny(self, self.case)
        fields = {**SIZES, **self.case.fields}
        self.config_tester = ConfigTester(
            self, config_class=type(self.case.build().config), common_properties=["hidden_size"], **fields
        )

    def _prepare_for_class(self, inputs_dict: Any, model_class: Any, return_labels: bool = False) -> dict[str, Any]:
        prepared = copy.deepcopy(inputs_dict)
        if return_labels:
            prepared["labels"] = self.case.batch()["labels"]
        return prepared

    def test_config(self) -> None:
        self.config_tester.run_common_tests()


def _reason(system: str, test: str) -> str | None:
    for entry in UNSUPPORTED["unsupported"]:
        if any(test == name or (name.endswith("*") and test.startswith(name[:-1])) for name in entry["tests"]):
            if system in entry.get("systems", [system]):
                return entry["reason"]
    return None


def _class_of(system: str, case: Case) -> type:
    body: dict[str, Any] = {"case": case, "all_model_classes": (type(case.build()),)}
    name = "Test_" + system.replace(" ", "_")
    made = type(name, (_Common, unittest.TestCase), body)
    for test, function in inspect.getmembers(made, inspect.isfunction):
        if test.startswith("test_") and (reason := _reason(system, test)):
            expected = pytest.mark.xfail(reason=reason, strict=True)
            setattr(made, test, expected(_copied(function)))
    return made


def _copied(function: Any) -> Any:
    """So that a mark on one system's test is none on the others'."""

    def test(self: Any) -> Any:
        return function(self)

    return test


globals().update({made.__name__: made for made in (_class_of(*item) for item in first_cases().items())})
