"""The base of every model here: weights read from a file lie in memory as freshly built ones do."""

from __future__ import annotations

from typing import Any, Self

from transformers import PreTrainedModel

ALIGNMENT = 64
"""Bytes; torch's own allocations start at multiples of it."""


class AlignedModel(PreTrainedModel):
    """A model that answers to the last bit what it answered before it was saved.

    Weights mapped from a safetensors file start wherever the file's header ends. Matrix kernels sum in another order
    on such addresses, so a loaded model would differ from the saved one in the last bits.
    """

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> Self:
        """As in transformers, but no code of a folder runs and nothing is unpickled; weights become aligned."""
        kwargs = {"trust_remote_code": False, "use_safetensors": True, **kwargs}
        loaded: Any = super().from_pretrained(*args, **kwargs)
        model = loaded[0] if kwargs.get("output_loading_info") else loaded
        for weight in (*model.parameters(), *model.buffers()):
            if weight.device.type == "cpu" and weight.data_ptr() % ALIGNMENT:
                weight.data = weight.data.clone()
        return loaded


def resize_pretrained(model: PreTrainedModel, n_pieces: int, mean_resizing: bool) -> None:
    """Gives the encoders of transformers inside a model as many rows as its own word table has.

    They read the same pieces. What describes them, ``encoder_config``, is changed with them.

    Args:
        model: Whose configuration has an ``encoder_config``; nothing happens where that is None.
        n_pieces: Rows.
        mean_resizing: As in ``resize_token_embeddings``.
    """
    config: Any = model.config
    if getattr(config, "encoder_config", None) is None:
        return
    for part in model.modules():
        if isinstance(part, PreTrainedModel) and part is not model:
            table: Any = part.get_input_embeddings()
            if table.num_embeddings != n_pieces:
                part.resize_token_embeddings(n_pieces, mean_resizing=mean_resizing)
    config.encoder_config = {**config.encoder_config, "vocab_size": n_pieces}
