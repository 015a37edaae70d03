"""What is done about what was found: one object, checked when it is made."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from empatheia.settings import Strict

Crisis = Literal["replace", "follow"]
Concern = Literal["follow", "pass"]


class Policy(Strict):
    """What the guard does.

    >>> Policy().crisis
    'replace'
    """

    crisis: Crisis = Field(
        default="replace",
        description="`replace`: the responder is not asked and the reply is composed; `follow`: it is asked, and"
        " the built reply stands in front of its own.",
    )
    concern: Concern = Field(
        default="follow",
        description="`follow`: the responder answers, then one gentle question and a pointer; `pass`: it answers.",
    )
    uncertain: Concern = Field(default="follow", description="The same for a text in another language than English.")
    check_replies: bool = Field(default=True, description="Look for harm in what the responder writes.")
    claims: Literal["reword", "pass"] = Field(
        default="reword",
        description='Sentences in which the responder claims a human past ("I had a dog too"): left out.',
    )
    block_every: int = Field(
        default=3, ge=1, description="Speaker turns before the block of resources may be repeated."
    )
    ask_every: int = Field(default=3, ge=1, description="Speaker turns before a gentle question may be asked again.")
    tell_nature: bool = Field(
        default=True, description="Asked whether it is human, answer no without asking the responder."
    )
    count: bool = Field(default=False, description="Count answers by level and day; no text is kept.")
