"""The check for danger in front of the answers of ``respond``, ``chat`` and servers, as the options name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from empatheia.care import Care
from empatheia.care.resources import Resources
from empatheia.cli.options import CareOptions
from empatheia.cli.output import say
from empatheia.errors import ConfigError

if TYPE_CHECKING:
    from empatheia.records.reply import Reply

WARNING = (
    "warning: care is off: nobody checks for danger, and whoever writes of wanting to die gets the model's own reply."
)


def check_resources(options: CareOptions) -> Resources | None:
    """The help lines, read before a model is opened; None, checked, where there is no check.

    Raises:
        ConfigError: The file of resources cannot be used, the country is no code, or either is given with --no-care.
    """
    if not options.no_care:
        return Resources.read(options.resources, options.country)
    if options.country is not None or options.resources is not None:
        raise ConfigError("--no-care names no help line; leave --country and --resources out.")
    return None


def tell_care(options: CareOptions) -> None:
    """Says that no check stands before the answers, or which help lines are old.

    Raises:
        ConfigError: See :func:`check_resources`.
    """
    resources = check_resources(options)
    if resources is None:
        say(WARNING)
        return
    for doubt in resources.outdated():
        say(f"warning: {doubt}.")


def open_care(options: CareOptions) -> Care | bool:
    """The check that the options name, after :func:`tell_care`; False where it is off."""
    tell_care(options)
    if options.no_care:
        return False

    return Care.read(resources=options.resources, country=options.country)


def tell_notice(care: Care | bool) -> None:
    """What a chat says before its first turn, and which country's lines it names."""
    if not isinstance(care, bool):
        say(care.notice())
        for doubt in care.resources.guesses():
            say(f"note: {doubt}.")


def tell_guesses(care: Care | bool, reply: Reply) -> None:
    """Where a reply may name help lines: which country's they are, if that was guessed."""
    if not isinstance(care, bool) and (reply.care or {}).get("level", "none") != "none":
        for doubt in care.resources.guesses():
            say(f"note: {doubt}.")
