"""Prompts to pieces: a model's own chat template where its tokenizer has one, the plain form otherwise.

Prompt and reply are cut at one place, so that what is scored, learnt and continued begins with the same pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from empatheia.errors import CheckpointError, ConfigError
from empatheia.records.dialogue import Example, Turn
from empatheia.taxonomy import IGNORED
from empatheia.text.prompts import TurnHints, Wording, hints_by_turn, messages_of, plain_prompt
from empatheia.text.words import count_words
from empatheia_research.text.collation import pad_rows

Form = Literal["causal", "seq2seq"]
FORMS: tuple[Form, ...] = ("causal", "seq2seq")
_MARK = "reply\u241fmark"


@dataclass(slots=True)
class PromptItem:
    """A conversation in a model's pieces.

    Attributes:
        prompt: Pieces of instruction, findings and turns, up to where the reply begins.
        reply: Pieces of the gold reply with its end; None without one.
        n_begin: Of these, leading marks that every reply has, which are given and not scored.
        n_target_words: Words of the reply (family rules) + 1 for the end.
        n_dropped_turns: Oldest turns that did not fit.
        was_cut: The beginning of the last turn did not fit either.
        dialogue_id, turn_index: Where it is from.
        between: Stretches ``[start, end)`` of ``reply`` that are no reply: what stands between two replies of a whole
            conversation (:func:`whole_conversations`). They are neither scored nor learnt.
    """

    prompt: list[int]
    reply: list[int] | None = None
    n_begin: int = 0
    n_target_words: int = 0
    n_dropped_turns: int = 0
    was_cut: bool = False
    dialogue_id: str = ""
    turn_index: int = -1
    between: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return len(self.prompt) + len(self.reply or ())


@dataclass
class PromptReader:
    """Turns conversations into a model's pieces and its pieces into text.

    Args:
        tokenizer: A transformers tokenizer.
        form: ``causal`` continues the prompt, ``seq2seq`` reads it.
        wording: Texts of the prompt.
        max_source: Most pieces of a prompt; the oldest turns go first, then the beginning of the last one.
        decoder_start: Piece a ``seq2seq`` model's reply starts from.
        further_ends: Pieces that end a reply besides the tokenizer's own.

    Raises:
        ConfigError: ``form`` or ``max_source`` is out of range.
        CheckpointError: The tokenizer has no piece that can end a reply.
    """

    tokenizer: Any
    form: Form = "causal"
    wording: Wording = field(default_factory=Wording)
    max_source: int = 512
    decoder_start: int = 0
    further_ends: Sequence[int] = ()
    kind: str = field(default="hf", init=False)

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ConfigError(f"form is {self.form!r}; accepted: {', '.join(FORMS)}.")
        if self.max_source < 8:
            raise ConfigError(f"max_source is {self.max_source}; accepted: 8 or more pieces.")
        self._lead, end = self._frame() if self.has_template else ("", self.tokenizer.eos_token_id)
        if end is None:
            raise CheckpointError("the model's tokenizer has no end-of-text piece; a reply could not end.")
        self._end = int(end)
        pad = self.tokenizer.pad_token_id
        self.pad_id = int(self._end if pad is None else pad)

    def __len__(self) -> int:
        return len(self.tokenizer)

    @property
    def has_template(self) -> bool:
        """Whether the tokenizer brings a chat template."""
        return bool(getattr(self.tokenizer, "chat_template", None))

    @property
    def ends(self) -> list[int]:
        """Pieces that end a reply."""
        own = [self._end, self.tokenizer.eos_token_id, *self.further_ends]
        return sorted({int(piece) for piece in own if piece is not None})

    def text_of(self, turns: Sequence[Turn], hints: TurnHints = None) -> str:
        """The prompt as the model gets it."""
        messages = messages_of(turns, hints, self.wording)
        return self._rendered(messages) if self.has_template else plain_prompt(messages, self.wording)

    def encode(self, example: Example, hints: TurnHints = None) -> PromptItem:
        """Pieces of a context, and of its reply if it has one.

        Args:
            example: Ends with a speaker turn.
            hints: What is shown of an analysis: of the newest turn, or of each turn.

        Raises:
            ConfigError: Not even instruction and findings fit into ``max_source``.
        """
        turns = list(example.context)
        by_turn = hints_by_turn(hints, len(turns))
        first = 0
        prompt = self._pieces(turns, by_turn)
        while len(prompt) > self.max_source and first < len(turns) - 1:
            first += 1
            prompt = self._pieces(turns[first:], by_turn[first:])
        was_cut = len(prompt) > self.max_source
        if was_cut:
            prompt = self._shortened(turns[-1], by_turn[-1], len(prompt))
        item = PromptItem(
            prompt,
            n_dropped_turns=first,
            was_cut=was_cut,
            dialogue_id=example.dialogue_id,
            turn_index=example.turn_index,
        )
        if example.response is not None:
            item.reply, item.n_begin = self._reply(turns[first:], by_turn[first:], prompt, example.response, was_cut)
            item.n_target_words = count_words(example.response) + 1
        return item

    def decode(self, pieces: Sequence[int]) -> str:
        """Text of generated pieces, without special ones."""
        return self.tokenizer.decode([piece for piece in pieces if piece >= 0], skip_special_tokens=True)

    def learning_batch(self, items: Sequence[PromptItem]) -> dict[str, Tensor]:
        """Prompts with their replies, padded on the right; only pieces of replies have labels.

        Args:
            items: At least one; each with a reply.

        Returns:
            ``input_ids``, ``attention_mask`` (True = keep) and ``labels`` (-100 ignored), int64 and bool. Shape:
            ``(batch, pieces)``. For ``seq2seq`` labels and ``decoder_input_ids`` are ``(batch, target)``.
        """
        replies = [item.reply or [] for item in items]
        if self.form == "causal":
            rows = [[*item.prompt, *reply] for item, reply in zip(items, replies, strict=True)]
            labels = [[IGNORED] * len(item.prompt) + _learnt(item) for item in items]
            return {**self._padded(rows), "labels": pad_rows(labels, IGNORED)}
        labels = [[IGNORED] * item.n_begin + reply[item.n_begin :] for item, reply in zip(items, replies, strict=True)]
        started = [[self.decoder_start, *reply[:-1]] for reply in replies]
        return {
            **self._padded([item.prompt for item in items]),
            "decoder_input_ids": pad_rows(started, self.pad_id),
            "labels": pad_rows(labels, IGNORED),
        }

    def answering_batch(self, items: Sequence[PromptItem]) -> dict[str, Tensor]:
        """Prompts alone: padded on the left for ``causal``, so that every row is continued at its end.

        Returns:
            ``input_ids`` int64 and ``attention_mask`` bool (True = keep). Shape: ``(batch, source)``.
        """
        rows = [item.prompt for item in items]
        if self.form == "seq2seq":
            return self._padded(rows)
        flipped = self._padded([row[::-1] for row in rows])
        return {name: tensor.flip(1) for name, tensor in flipped.items()}

    # -- parts -----------------------------------------------------------------------------------------------

    def _padded(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        ids = pad_rows(rows, self.pad_id)
        lengths = torch.tensor([len(row) for row in rows])
        return {"input_ids": ids, "attention_mask": torch.arange(ids.shape[1]) < lengths[:, None]}

    def _pieces(self, turns: Sequence[Turn], hints: TurnHints) -> list[int]:
        text = self.text_of(turns, hints)  # a template writes its own marks
        return list(self.tokenizer(text, add_special_tokens=not self.has_template).input_ids)

    def _shortened(self, turn: Turn, hints: TurnHints, n_pieces: int) -> list[int]:
        """Pieces of the last turn alone without as much of its beginning as does not fit."""
        text, prompt = turn.text, [0] * n_pieces
        while len(prompt) > self.max_source:
            if not text:
                raise ConfigError(
                    f"instruction and findings alone have {len(prompt):,} pieces, max_source is {self.max_source:,};"
                    " set a larger one or a shorter instruction."
                )
            share = self.max_source / len(prompt)
            kept = min(len(text) - 1, int(share * len(text)))
            blank = text.find(" ", len(text) - kept)
            text = text[blank + 1 if 0 <= blank < len(text) - 1 else len(text) - kept :]
            prompt = self._pieces([Turn(turn.role, text)], hints)
        return prompt

    def _reply(
        self, turns: Sequence[Turn], hints: TurnHints, prompt: Sequence[int], reply: str, was_cut: bool
    ) -> tuple[list[int], int]:
        if self.form == "seq2seq":
            ids = list(self.tokenizer(text_target=reply).input_ids)
            begin = next((n for n, piece in enumerate(ids) if piece not in self.tokenizer.all_special_ids), len(ids))
            return (ids if ids and ids[-1] in self.ends else [*ids, self._end]), begin
        lead = self._lead if self.has_template else " "
        if not was_cut:  # pieces of the whole, cut where the prompt ends
            text = self.text_of(turns, hints) + lead + reply
            whole = self.tokenizer(text, add_special_tokens=not self.has_template).input_ids
            marks = {self._end, self.tokenizer.sep_token_id}
            if whole[: len(prompt)] == list(prompt):
                rest = list(whole[len(prompt) :])
                while rest and not self.has_template and rest[-1] in marks:  # added behind every text
                    rest.pop()
                return [*rest, self._end], 0
        return [*self.tokenizer(lead + reply, add_special_tokens=False).input_ids, self._end], 0

    def _rendered(self, messages: Sequence[dict[str, str]]) -> str:
        """Through the chat template; one that knows no system message gets it before the first turn."""
        return self._template(messages, add_generation_prompt=True)

    def _template(self, messages: Sequence[dict[str, str]], **options: Any) -> str:
        def render(chosen: Sequence[dict[str, str]]) -> str:
            return self.tokenizer.apply_chat_template(list(chosen), tokenize=False, **options)

        try:
            text = render(messages)
            if len(messages) == 1 or messages[0]["content"] in text:
                return text
        except Exception as problem:
            if not _is_template_error(problem):
                raise
        system, first, *others = messages
        try:
            return render([{**first, "content": f"{system['content']}\n\n{first['content']}"}, *others])
        except Exception as problem:
            if not _is_template_error(problem):
                raise
            raise CheckpointError(f"the model's chat template refuses the conversation: {problem}.") from None

    def _frame(self) -> tuple[str, int | None]:
        """What the template writes before a reply beyond the prompt, and the piece that ends the reply."""
        messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
        prompt = self._rendered(messages)
        whole = self._template([*messages, {"role": "assistant", "content": _MARK}])
        before, mark, after = whole.partition(_MARK)
        if not mark:
            return "", self.tokenizer.eos_token_id
        lead = before[len(prompt) :] if before.startswith(prompt) else ""
        specials = set(self.tokenizer.all_special_ids) | set(getattr(self.tokenizer, "added_tokens_decoder", {}))
        ids = self.tokenizer(after, add_special_tokens=False).input_ids if after else []
        return lead, next((piece for piece in ids if piece in specials), self.tokenizer.eos_token_id)


def _learnt(item: PromptItem) -> list[int]:
    """The labels of an item's reply: what stands between two replies is ignored."""
    labels = list(item.reply or ())
    for start, end in item.between:
        labels[start:end] = [IGNORED] * (end - start)
    return labels


def whole_conversations(items: Sequence[PromptItem]) -> list[PromptItem]:
    """Joins items of one conversation into one that is read once and learns all its replies.

    Two are joined where the prompt of the second begins with the pieces of prompt and reply of the first, which chat
    templates see to; others stay by themselves, so nothing is ever learnt from other pieces than an item alone has.

    Args:
        items: With replies, those of a conversation one after the other; of a ``causal`` model.
    """
    out: list[PromptItem] = []
    for item in items:
        last = out[-1] if out else None
        if last is not None and last.dialogue_id == item.dialogue_id and last.reply and item.reply:
            whole = [*last.prompt, *last.reply]
            if item.prompt[: len(whole)] == whole:
                start, end = len(last.reply), len(item.prompt) - len(last.prompt)
                out[-1] = replace(
                    last,
                    reply=[*item.prompt[len(last.prompt) :], *item.reply],
                    n_target_words=last.n_target_words + item.n_target_words,
                    turn_index=item.turn_index,
                    between=(*last.between, (start, end)),
                )
                continue
        out.append(item)
    return out


def _is_template_error(problem: Exception) -> bool:
    """Whether the template itself refused; its library comes with transformers and is not ours to import."""
    return type(problem).__module__.partition(".")[0] == "jinja2"


def train_prompt_pieces(texts: Iterable[str], size: int = 8000) -> Any:
    """A tokenizer for a model that is built from nothing: byte-level byte pairs, case and blanks kept.

    Args:
        texts: What the pieces are learnt from.
        size: Most entries, the 256 bytes and two marks included.

    Raises:
        ConfigError: ``size`` is smaller than those.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if size < len(alphabet) + 2:
        raise ConfigError(f"size is {size}; accepted: at least {len(alphabet) + 2} (every byte, padding and end).")
    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer: Any = trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<pad>", "<end>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>")
