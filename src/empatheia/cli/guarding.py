"""``--no-care``, ``--country``, ``--resources``: the check in front of the answers of ``respond`` and ``chat``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from empatheia.errors import ConfigError

if TYPE_CHECKING:
    from empatheia.care import Care
    from empatheia.dialogue import Reply

NoCareOption = Annotated[
    bool, typer.Option("--no-care", help="Answer without the check for danger; prints a warning and marks the answer.")
]
CountryOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="XX", help="Country of the help lines, two letters, e.g. GB [guessed from the locale]."),
]
ResourcesOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--resources", metavar="FILE", help="YAML file with your own help lines, instead of the shipped ones."
    ),
]
WARNING = (
    "warning: care is off: nobody checks for danger, and whoever writes of wanting to die gets the model's own reply."
)


def check_resources(is_off: bool = False, country: str | None = None, resources: Path | None = None) -> None:
    """Reads the file of help lines before torch is imported, which takes seconds; raises as :func:`open_care` does."""
    if not is_off:
        from empatheia.care.resources import Resources

        Resources.read(resources, country)


def open_care(is_off: bool = False, country: str | None = None, resources: Path | None = None) -> Care | bool:
    """The check that the options name; False, with a warning, where it is off.

    Args:
        is_off: As ``--no-care``.
        country: As ``--country``.
        resources: As ``--resources``.

    Raises:
        ConfigError: The file of resources cannot be used, the country is no code, or either is given with --no-care.
    """
    from empatheia.cli.output import say

    if is_off:
        if country is not None or resources is not None:
            raise ConfigError("--no-care names no help line; leave --country and --resources out.")
        say(WARNING)
        return False
    from empatheia.care import Care

    care = Care.read(resources=resources, country=country)
    for doubt in care.resources.outdated():
        say(f"warning: {doubt}.")
    return care


def tell_notice(care: Care | bool) -> None:
    """What a chat says before its first turn, and which country's lines it names."""
    from empatheia.cli.output import say

    if not isinstance(care, bool):
        say(care.notice())
        for doubt in care.resources.guesses():
            say(f"note: {doubt}.")


def tell_guesses(care: Care | bool, reply: Reply) -> None:
    """Where a reply may name help lines: which country's they are, if that was guessed."""
    from empatheia.cli.output import say

    if not isinstance(care, bool) and (reply.care or {}).get("level", "none") != "none":
        for doubt in care.resources.guesses():
            say(f"note: {doubt}.")
