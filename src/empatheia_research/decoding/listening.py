"""A fresh listener: a model that did not speak, asked which context a reply answers.

With a uniform prior its final belief is ``p(c) ~ prod_t S0(u_t | c, u_<t)^beta`` (Kim et al. 2021, closed form), so
which context it finds the likeliest does not depend on beta.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from empatheia.errors import ConfigError
from empatheia.records.dialogue import Dialogue
from empatheia_research.decoding.distractors import Contrast
from empatheia_research.decoding.given_replies import focused_score
from empatheia_research.decoding.models import GeneratingModel
from empatheia_research.decoding.world_inputs import Encode, worlds_of


class FreshListener:
    """Hears replies and says whether it would have found their contexts.

    Args:
        model: Any encoder-decoder or decoder, in evaluation mode.
        encode: Contexts as it reads them; see :func:`empatheia_research.decoding.world_inputs.worlds_of`.
        labels: Replies as its pieces with their end mark, -100 behind; e.g. ``ContextReader.labels``.
        name: Of the model.
    """

    def __init__(
        self, model: GeneratingModel[object], encode: Encode, labels: Callable[[Sequence[str]], Tensor], name: str
    ) -> None:
        self.model = model
        self.encode = encode
        self.labels = labels
        self.name = name

    def tells(
        self,
        dialogues: Sequence[Dialogue],
        contrasts: Sequence[Contrast],
        replies: Sequence[str],
        *,
        spoken_by: str | None = None,
        batch_size: int = 32,
    ) -> list[bool]:
        """Whether each reply tells its true context from the distractors; a tie does not.

        Args:
            dialogues: Contexts.
            contrasts: Their distractors; other ones than the speaker was focused with, or the question is the one it
                was made to answer.
            replies: Plain text.
            spoken_by: Name of the model that spoke; it must be another one.
            batch_size: Most replies in one pass.

        Raises:
            ConfigError: The listener spoke itself.
            DecodingError: Numbers differ, or a context has no distractors.
        """
        if spoken_by is not None and spoken_by == self.name:
            raise ConfigError(
                f"the listener {self.name!r} also spoke; a speaker understands itself. Give another model, or leave"
                " `spoken_by` out."
            )
        told: list[bool] = []
        for start in range(0, len(replies), batch_size):
            part = slice(start, start + batch_size)
            worlds = worlds_of(dialogues[part], contrasts[part], self.encode)
            scores = focused_score(self.model, worlds, self.labels(replies[part]))
            told += scores.tells_true().tolist()
        return told
