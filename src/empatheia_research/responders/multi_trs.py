"""Multi-TRS: a Transformer that also says the emotion (Rashkin et al. 2018's multitask in MoEL's frame).

``logits = W_e H[:, 0]`` without bias, loss + cross-entropy; the emotion does not reach the decoder. EmpDG's baseline
"EmoPrepend" is this model with the cross-entropy summed over the batch, and prepends nothing. With ``emotion_head``
False it is the family's plain Transformer (TRS): one loss, no emotion.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from empatheia_research.responders.moel_family import FamilyConfig, FamilyEncoder, FamilyResponder
from empatheia_research.responders.seq2seq import ResponderEncoding, register


class MultiTRSConfig(FamilyConfig):
    """Sizes of TRS and Multi-TRS.

    Args:
        emotion_head: Say the emotion; False: plain TRS.
        n_encoder_layers: MoEL's repository has 2; CEM's 1.
        n_decoder_layers: Likewise.
        **kwargs: Of :class:`FamilyConfig`.
    """

    model_type = "multi_trs"

    def __init__(
        self, emotion_head: bool = True, n_encoder_layers: int = 2, n_decoder_layers: int = 2, **kwargs: Any
    ) -> None:
        self.emotion_head = emotion_head
        super().__init__(n_encoder_layers=n_encoder_layers, n_decoder_layers=n_decoder_layers, **kwargs)


class MultiTRSEncoder(FamilyEncoder):
    """The family's encoder with an emotion head on CLS."""

    def __init__(self, config: MultiTRSConfig) -> None:
        super().__init__(config)
        self.emotion = nn.Linear(config.width, config.n_emotions, bias=False) if config.emotion_head else None

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        **_: Any,
    ) -> ResponderEncoding:
        """Encodes the context and reads CLS; shapes as in :class:`ResponderEncoding`."""
        states = self.states(input_ids, attention_mask, role_ids)
        logits = None if self.emotion is None else self.emotion(states[:, 0])
        return ResponderEncoding(last_hidden_state=states, emotion_logits=logits)


class MultiTRS(FamilyResponder):
    """Context in; emotion and reply out."""

    config_class = MultiTRSConfig

    def __init__(self, config: MultiTRSConfig) -> None:
        super().__init__(config)
        self.has_emotion_head = config.emotion_head  # TRS has none

    def build_encoder(self, config: MultiTRSConfig) -> nn.Module:
        """Words, roles, blocks, emotion head."""
        return MultiTRSEncoder(config)


register(MultiTRS)
