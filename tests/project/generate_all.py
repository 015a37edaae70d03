"""Every responder generates once, greedily and with beams; the last line counts them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "responders"))

import torch
from contract import Case, all_cases

from empatheia_research.responders import RESPONDERS
from empatheia_research.responders.language_model import load_base
from empatheia_research.responders.rashkin_retrieval import RashkinRetrieval, RetrievalConfig
from tiny_language_models import make_folder


def uses() -> Iterator[tuple[str, Callable[[], None]]]:
    """System, and its use."""
    for case in all_cases().values():
        yield case.system, partial(generate_case, case)
    yield "language_model", partial(language_model, "llama", "causal")
    yield "language_model", partial(language_model, "t5", "seq2seq")
    yield "rashkin_retrieval", retrieval


def generate_case(case: Case) -> None:
    """One of the contract suite's."""
    generate(case.build().eval(), **case.inputs(case.batch()))


def generate(model: Any, **inputs: Any) -> None:
    """Greedily and with beams."""
    for beams in (1, 3):
        made = model.generate(**inputs, max_new_tokens=9, do_sample=False, num_beams=beams)
        assert made.shape[0] == 3 and made.shape[1] > 1, made.shape


def language_model(kind: str, form: str) -> None:
    """A tiny one of transformers."""
    with tempfile.TemporaryDirectory() as folder:
        generate(load_base(str(make_folder(Path(folder), kind)), form).eval(), input_ids=torch.full((3, 4), 7))


def retrieval() -> None:
    """It chooses replies."""
    config = RetrievalConfig(vocab_size=60, width=16, n_layers=1, n_heads=2, ffn_width=32)
    ids = torch.full((3, 4), 7)
    assert RashkinRetrieval(config).eval().encode_contexts(ids, torch.ones_like(ids)).shape == (3, 16)


def main() -> int:
    """1 if one does not."""
    named = {name for name in RESPONDERS.names()}
    done: set[str] = set()
    failed: set[str] = set()
    for system, use in uses():
        try:
            use()
            done.add(system)
        except Exception as error:  # the next is tried
            print(f"{system}: {type(error).__name__}: {error}")
            failed.add(system)
    print(f"{len(done - failed)} of {len(named)}")
    return 1 if named != done - failed else 0


if __name__ == "__main__":
    sys.exit(main())
