"""Where people find help, by country: one YAML file, every entry with its source and the day it was checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from empatheia.errors import ConfigError
from empatheia.reading import Json
from empatheia.registry import nearest
from empatheia.settings import Strict, read_yaml

RESOURCES = Path(__file__).parent / "data" / "resources.yaml"
MONTHS = 12
"""Entries checked longer ago are warned of."""
LOCAL_EMERGENCY = "your local emergency number"
Purpose = Literal["emergency", "suicide", "text", "abuse", "poison"]


class ResourceEntry(Strict):
    """One service."""

    name: str = Field(min_length=1)
    purpose: Purpose = Field(alias="for")
    number: str = ""
    text: str = Field("", description="A number for text messages.")
    url: str = ""
    languages: tuple[str, ...] = ()
    hours: str = ""
    source: str = Field(min_length=1, description="Where the number was read.")
    last_verified: date

    @field_validator("number", "text", mode="before")
    @classmethod
    def _string(cls, value: Any) -> Any:
        if isinstance(value, int):
            raise ValueError(f'{value} is a number without quotes; write "{value}", so that no leading 0 is lost')
        return value

    def line(self) -> str:
        """For people: its name, how to reach it, when."""
        ways = []
        if self.number and self.number == self.text:
            ways.append(f"call or text {self.number}")
        else:
            ways += [f"call {self.number}"] if self.number else []
            ways += [f"text {self.text}"] if self.text else []
        ways += [self.url] if self.url else []
        return f"{self.name}: {', '.join(ways)}" + (f" ({self.hours})" if self.hours else "")


class CountryEntry(Strict):
    """The services of one country."""

    name: str = Field(min_length=1)
    entries: tuple[ResourceEntry, ...] = ()
    url: str = ""


class ResourceFile(Strict):
    """The whole file."""

    worldwide: CountryEntry = CountryEntry(name="Anywhere")
    countries: dict[str, CountryEntry] = Field(min_length=1)
    members: dict[str, tuple[str, ...]] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resources:
    """Services of all countries, and of which one they are shown.

    Attributes:
        file: What was read.
        path: Whence.
        country: Two letters; "" = not known.
        guessed_from: What the country was guessed from; "" where it was given.
    """

    file: ResourceFile
    path: Path
    country: str = ""
    guessed_from: str = ""

    @classmethod
    def read(cls, path: str | Path | None = None, country: str | None = None) -> Resources:
        """From a file.

        Args:
            path: None = the shipped one.
            country: Two letters, e.g. ``GB``; None = guessed from the locale, which is told.

        Raises:
            ConfigError: The file is missing, empty or broken, or the country is no code of two letters.
        """
        path = RESOURCES if path is None else Path(path)
        file = _read(path)
        guessed = ""
        if country is None:
            country, guessed = guess_country()
        code = country.strip().upper()
        code = {"UK": "GB"}.get(code, code)
        if code and not (len(code) == 2 and code.isascii() and code.isalpha()):
            known = sorted(file.countries)
            raise ConfigError(
                f"country is {country!r}.{nearest(code, known)} Accepted: two letters, e.g. {', '.join(known[:6])}."
            )
        return cls(file, path, code, guessed)

    def entries(self, country: str | None = None) -> tuple[ResourceEntry, ...]:
        """Services of a country, or of the place it belongs to; empty if there are none."""
        code = self.country if country is None else country.upper()
        if code in self.file.countries:
            return self.file.countries[code].entries
        for group, members in self.file.members.items():
            if code in members and group in self.file.countries:
                return self.file.countries[group].entries
        return self.file.worldwide.entries

    @property
    def emergency(self) -> str:
        """The emergency number, or words for it."""
        return next((e.number for e in self.entries() if e.purpose == "emergency" and e.number), LOCAL_EMERGENCY)

    def block(self, kinds: Iterable[str] = ()) -> str:
        """What a reply in a crisis names, a service a line."""
        wanted: set[str] = {"suicide", "text"}
        kinds = set(kinds)
        wanted |= {"abuse"} if "abuse" in kinds else set()
        wanted |= {"poison"} if "emergency" in kinds else set()
        lines = [f"- If there is danger right now: call {self.emergency}."]
        lines += [f"- {entry.line()}" for entry in self.entries() if entry.purpose in wanted]
        if len(lines) == 1:
            lines.append("- A crisis line or a doctor on duty in your country; your emergency service can name one.")
        if url := self.file.worldwide.url:
            lines.append(f"- Helplines by country: {url}")
        lines.append("- Somebody you trust, who can be with you.")
        return "\n".join(lines)

    def short(self) -> str:
        """The same in half a line, for the pointer after a concern."""
        lines = [entry for entry in self.entries() if entry.purpose == "suicide"]
        if not lines:
            return f"a doctor, a crisis line in your country, or {self.emergency} in an emergency"
        return f"{lines[0].line()}, or {self.emergency} in an emergency"

    def guesses(self) -> list[str]:
        """Whether the country was guessed, and whether nothing is known of it."""
        told = []
        if self.guessed_from:
            place = self.country or "(unknown)"
            told.append(f"the country {place} was guessed from {self.guessed_from}; name it with --country")
        if not self.entries():
            told.append(
                f"no help line is known for {self.country or 'an unknown country'}: replies say"
                f" {LOCAL_EMERGENCY!r}. Add yours to a copy of {self.path.name}"
            )
        return told

    def outdated(self, today: date | None = None) -> list[str]:
        """Entries that were checked too long ago."""
        today = today or date.today()
        old = [entry.name for entry in self.entries() if _months(entry.last_verified, today) > MONTHS]
        if not old:
            return []
        return [f"checked more than {MONTHS} months ago: {', '.join(old)}. Check them and set last_verified"]

    def doubts(self, today: date | None = None) -> list[str]:
        """What whoever runs this should know: :meth:`guesses` and :meth:`outdated`."""
        return [*self.guesses(), *self.outdated(today)]

    def to_list(self, country: str | None = None) -> list[dict[str, Json]]:
        """Plain JSON-ready data; of one country, or of all."""
        codes = [country.upper()] if country else sorted(self.file.countries)
        return [
            {"country": code, **entry.model_dump(mode="json", by_alias=True)}
            for code in codes
            for entry in self.entries(code)
        ]


def read_mapping(path: Path, what: str, remedy: str) -> dict[str, Any]:
    """The mapping in a YAML file of care.

    Args:
        path: The file.
        what: It is, for the message.
        remedy: How a message ends.

    Raises:
        ConfigError: It is missing, unreadable, no YAML, or no mapping.
    """
    if not path.is_file():
        raise ConfigError(f"the {what} {path} cannot be read: there is no such file. {remedy}.")
    try:
        return read_yaml(path)
    except OSError as error:
        raise ConfigError(f"the {what} {path} cannot be read: {error.strerror}. {remedy}.") from None
    except ConfigError as error:
        raise ConfigError(f"the {what} cannot be used: {error} {remedy}.") from None


def _read(path: Path) -> ResourceFile:
    remedy = "Care does not answer without it: name another file, or reinstall the package"
    tree = read_mapping(path, "file of resources", remedy)
    if not tree.get("countries"):
        raise ConfigError(f"{path} names no country; accepted: a mapping with countries. {remedy}.")
    try:
        return ResourceFile.model_validate(tree)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {where}: {first['msg']} (found {first.get('input')!r}). {remedy}.") from None


def guess_country(environment: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Country and what it was guessed from; ("", ...) if the locale names none.

    >>> guess_country({"LANG": "en_GB.UTF-8"})
    ('GB', 'LANG=en_GB.UTF-8')
    """
    environment = os.environ if environment is None else environment
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = environment.get(name, "")
        place = value.split(".")[0].split("@")[0].partition("_")[2]
        if len(place) == 2 and place.isalpha():
            return place.upper(), f"{name}={value}"
    return "", "the locale, which names none"


def _months(then: date, now: date) -> int:
    return (now.year - then.year) * 12 + now.month - then.month - (now.day < then.day)
