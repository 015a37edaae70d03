"""What decoding asks of a model: any of transformers with ``generate()``, and the responders here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from torch import Tensor
from torch.utils.hooks import RemovableHandle
from transformers import GenerationConfig, PreTrainedConfig

Made = TypeVar("Made", covariant=True)
Processor = Callable[[Tensor, Tensor], Tensor]
"""Pieces so far and the scores of the next one to new scores; shapes as of a ``LogitsProcessor``."""
Stops = Callable[[Tensor, Tensor | None], Tensor]
"""Pieces so far to whether each row is at its end; shapes as of a ``StoppingCriteria``."""


class StepwiseModel(Protocol):
    """A model that a loop of one's own may ask for the next piece, as ``GenerationMixin`` lets it."""

    @property
    def config(self) -> PreTrainedConfig:
        """Sizes."""
        ...

    def __call__(self, *args: Any, **inputs: Any) -> Any:
        """Scores of pieces, as ``logits``, and what else the model says."""
        ...

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs: Any) -> Mapping[str, object]:
        """Inputs of one step."""
        ...

    def _update_model_kwargs_for_generation(
        self, outputs: Any, model_kwargs: dict[str, Any], is_encoder_decoder: bool = False
    ) -> dict[str, Any]: ...


class GeneratingModel(StepwiseModel, Protocol[Made]):
    """A model with ``generate()``, which gives ``Made``: pieces, or a record of them and their scores."""

    training: bool

    @property
    def generation_config(self) -> GenerationConfig | None:
        """Settings of ``generate()`` that a call does not name."""
        ...

    @property
    def forward(self) -> Callable[..., object]:
        """Its signature says what the model reads."""
        ...

    def generate(self, *args: Any, **kwargs: Any) -> Made:
        """As in transformers."""
        ...

    def register_forward_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """As in torch."""
        ...
