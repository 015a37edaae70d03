"""The base of every model here: weights read from a file lie in memory as freshly built ones do."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel

ALIGNMENT = 64
"""Bytes; torch's own allocations start at multiples of it."""


class AlignedModel(PreTrainedModel):
    """A model that answers to the last bit what it answered before it was saved.

    Weights mapped from a safetensors file start wherever the file's header ends. Matrix kernels sum in another order
    on such addresses, so a loaded model would differ from the saved one in the last bits.
    """

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:  # pyright: ignore
        """As in transformers, but no code of a folder runs and nothing is unpickled; weights become aligned."""
        kwargs = {"trust_remote_code": False, "use_safetensors": True, **kwargs}
        loaded: Any = super().from_pretrained(*args, **kwargs)
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        for weight in (*model.parameters(), *model.buffers()):
            if weight.device.type == "cpu" and weight.data_ptr() % ALIGNMENT:
                weight.data = weight.data.clone()
        return loaded
