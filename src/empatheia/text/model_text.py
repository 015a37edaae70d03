"""What a language model says, without its thoughts and without the tokens of its template; whole or in pieces.

Everything that a model of others has written passes through here before anybody reads it: answers of endpoints, plain
and streamed, replies of models in this process, and what a client sends back as an assistant's earlier message.
"""

from __future__ import annotations

import re

_KINDS = r"(?:\w+:)?(?:think(?:ing)?|thoughts?|reasoning|reflection|analysis|scratchpad)"
_OTHERS = ("user", "human", "system", "developer", "tool", "observation", "environment")
_UNMARKED = "assistantfinal"
"""Stands where a server drops the special tokens of a model with channels: its answer follows."""
_MARK = re.compile(
    rf"""
    (?P<open> <{_KINDS}> | \[THINK\] | ◁think▷ | <\|channel>
            | <\|(?:start_thinking|begin_of_th(?:ought|ink)|think(?:ing)?)\|> )
  | (?P<close> </{_KINDS}> | \[/THINK\] | ◁/think▷ | <channel\|> | {_UNMARKED}
            | <\|(?:end_thinking|end_of_th(?:ought|ink)|/think(?:ing)?)\|> )
  | (?P<head> <[|｜](?:start|im_start|start_header_id|start_of_role|start_of_turn|turn)[|｜]>
            | <start_of_turn> | <\|turn> )
  | (?P<channel> <\|channel\|> )
  | (?P<body> <\|(?:message|end_header_id|end_of_role)\|> )
  | (?P<other> <[|｜](?:{"|".join(_OTHERS)})[|｜]> | \[INST\] )
  | (?P<end> <[|｜](?:im_end|eot_id|eom_id|end|endoftext|end_of_text|end[▁_]of[▁_]sentence|end_of_turn(?:_token)?
            |return|call|eos|eot|end_of_solution|end_response)[|｜]> | </s> | <end_of_turn> | <eos> | <turn\|> )
  | (?P<token> <[|｜][^\s<>|｜]{{1,40}}[|｜]> | <s> | <bos> | <pad> | <unk> | \[/INST\] )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WRITTEN = re.compile(rf"<{_KINDS}>", re.IGNORECASE)
_TEMPLATE = ("head", "channel", "body", "other", "end", "token")
_PARTIAL = re.compile(r"(?:<[/|｜]?[\w▁:/-]{0,40}[|｜]?|\[/?[A-Za-z]{0,5}|◁/?\w{0,5})\Z")
_LONGEST = 48  # characters of a mark, at most
_SENTENCE = re.compile(r"[.!?…\n]\s|\n")
_MUSES = re.compile(
    r"\A\s*(?:analysis[A-Z]|(?:thinking|we (?:need to|should|must))\b)"
    r"|\bthe (?:user|speaker|listener|assistant|person|system prompt)\b"
    r"|\bI(?: should|'ll (?:need|respond|reply)| (?:need|have|want|ought) to)\b",
    re.IGNORECASE,
)
"""How thoughts begin; what begins so is held back until it is known which it is."""
_MAY_MUSE = re.compile(r"\A\s*(?:okay|ok|alright|hmm+|first|so|let(?: me|'s))\b", re.IGNORECASE)
"""How thoughts and answers begin: the first sentence does not decide."""
_BEGINNING = 60  # characters after which that is decided
_MOST_HELD = 8000  # characters of what may be thoughts that nobody marks as such


class ModelText:
    """What is said in a text that comes in pieces; a mark that is not whole yet is held back.

    Between the marks of thoughts nothing is said, nor before a closing mark without an opening one, whose opening stood
    in the prompt; after the end of a turn nothing is said any more. Behind words that were said, ``<think>`` without
    its end, ``<s>``, ``</s>`` with words behind it, and a closing mark with none behind it are no marks: people write
    these.

    Args:
        begins_in_thought: All is held back up to a closing mark: the model was seen to answer so.

    Attributes:
        began_in_thought: There was a closing mark without an opening one.
    """

    def __init__(self, begins_in_thought: bool = False) -> None:
        self.began_in_thought = False
        self._rest = ""  # what may be the beginning of a mark
        self._ready = ""  # what is said and not given out
        self._n_said = 0  # characters of the turn so far that are no white space
        self._state = "says"  # or "thinks", "is headed", "is over"
        self._head = ""
        self._is_channel = self._was_marked = False
        self._holds: bool | None = begins_in_thought or None  # None = not decided
        self._begins_in_thought = begins_in_thought
        self._doubted: str | None = None  # from an opening mark behind what was said, until it is closed
        self._ending = ""  # "</s>" and the white space behind it: a word that follows makes it said
        self._closed = ""  # what stood before a closing mark without an opening one

    def next(self, piece: str) -> str:
        """What can be given out after a further piece has come."""
        self._rest += piece
        tail = self._rest[-_LONGEST:]
        partial = _PARTIAL.search(tail)
        cut = len(self._rest) - (0 if partial is None else len(tail) - partial.start())
        if partial is None:
            cut -= next((n for n in range(len(_UNMARKED) - 1, 0, -1) if tail.endswith(_UNMARKED[:n])), 0)
        text, self._rest = self._rest[:cut], self._rest[cut:]
        self._read(text)
        return self._given()

    def end(self) -> str:
        """What is left when no piece comes any more."""
        text, self._rest = self._rest, ""
        self._read(text)
        self._undoubt()
        if self._closed and not self._n_said:
            self._ready, self.began_in_thought = self._closed, False
        self._holds = False
        said = self._given()
        return said.rstrip() if self._was_marked else said

    def _given(self) -> str:
        """What is ready, unless it may be thoughts."""
        is_clear = _SENTENCE.search(self._ready) and not _MAY_MUSE.match(self._ready)
        if self._holds is None and (len(self._ready) >= _BEGINNING or is_clear):
            self._holds = _MUSES.search(self._ready[: 2 * _BEGINNING]) is not None
        if self._holds is None or (self._holds and len(self._ready) < _MOST_HELD):
            return ""
        said, self._ready, self._holds = self._ready, "", False
        return said

    def _read(self, text: str) -> None:
        place = 0
        for mark in _MARK.finditer(text):
            self._hear(text[place : mark.start()])
            if not self._is_word(str(mark.lastgroup), mark[0]):
                self._meet(str(mark.lastgroup), mark[0])
            place = mark.end()
        self._hear(text[place:])

    def _hear(self, text: str) -> None:
        """Text between marks."""
        if self._state == "is headed":
            name, line, text = text.partition("\n")
            self._head += name
            if line and not self._is_channel:
                self._begin()
        if self._doubted is not None:
            self._doubted += text
        elif self._ending and not text.strip():
            self._ending += text
        elif self._state == "says":
            if self._was_marked and not self._n_said:
                text = text.lstrip()
            self._n_said += len(text.strip())
            self._ready += self._ending + text
            self._ending = ""

    def _is_word(self, kind: str, mark: str) -> bool:
        """Whether a mark may be part of what is said; it is kept if so."""
        if self._doubted is not None:
            if kind in ("open", "token"):
                self._doubted += mark
                return True
            if kind != "close":
                self._undoubt()
        if self._state != "says" or not self._n_said:
            return False
        if kind == "open" and _WRITTEN.fullmatch(mark) and not self._ending:
            self._state, self._doubted = "thinks", mark
        elif mark == "</s>" and not self._ending:
            self._ending = mark
        elif mark == "<s>" and not self._ending:
            self._hear(mark)
        else:
            return False
        return True

    def _undoubt(self) -> None:
        """What followed an opening mark was said."""
        if self._doubted is not None:
            text, self._doubted, self._state = self._doubted, None, "says"
            self._hear(text)

    def _meet(self, kind: str, mark: str) -> None:
        """A mark."""
        self._was_marked = True
        if self._ending and self._state == "says":  # a token behind the end of the text
            self._state, self._ending = "is over", ""
        if self._state == "is over":
            return
        if kind == "open":
            self._state, self._is_channel = "thinks", False
        elif kind == "close":
            self._close(mark)
        elif kind in ("head", "channel"):
            self._state, self._head, self._is_channel = "is headed", "", kind == "channel"
        elif kind == "body" and self._state == "is headed":
            self._begin()
        elif kind == "end" and self._state == "thinks" and self._is_channel:
            self._state = "says"
        elif kind in ("end", "other") and self._state == "says" and self._n_said:
            self._state = "is over"

    def _close(self, mark: str) -> None:
        """Thoughts end, or what was said up to here were thoughts."""
        if self._state != "thinks":
            self.began_in_thought = True
            is_said = mark.startswith("</") and not self._begins_in_thought
            self._closed = self._ready if is_said and not _MUSES.search(self._ready[: 2 * _BEGINNING]) else ""
            self._forget()
        self._state, self._doubted = "says", None

    def _begin(self) -> None:
        """What a head names begins: a role's turn, or a channel of it."""
        name = (self._head.split() or [""])[0].lower()
        if self._is_channel:
            self._state = "says" if name == "final" else "thinks"
            if name == "final":
                self._forget()
        else:
            self._state = "is over" if name in _OTHERS and self._n_said else "says"

    def _forget(self) -> None:
        """What was said up to here were thoughts."""
        self._ready, self._n_said, self._holds = "", 0, False


def spoken(text: str) -> str:
    r"""What is said in a whole text of a model; one without marks stays as it is.

    >>> spoken("<think>sad</think>\n\nOh no!<|im_end|>\n<|im_start|>user\nThanks.")
    'Oh no!'
    >>> spoken("The user is sad.</think>Oh no!")
    'Oh no!'
    """
    heard = ModelText()
    heard._read(text)
    return heard.end()


def without_tokens(text: str) -> str:
    """A person's words without the tokens of templates, which a model would take for the end of them.

    >>> without_tokens("Hi<|im_end|> <|im_start|>system")
    'Hi system'
    """
    return _MARK.sub(lambda mark: "" if mark.lastgroup in _TEMPLATE else mark[0], text)
