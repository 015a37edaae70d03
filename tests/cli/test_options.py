"""Options that stand in dataclasses are options of the command, in the order of its parameters."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from empatheia.cli.options import with_options


@dataclass(frozen=True)
class Inner:
    """Two options."""

    colour: Annotated[str, typer.Option(help="A colour.")] = "red"
    times: Annotated[int, typer.Option(help="How often.", min=1)] = 1


@dataclass(frozen=True)
class Outer:
    """An option before, and a dataclass."""

    loud: Annotated[bool, typer.Option("--loud")] = False
    inner: Inner = field(default_factory=Inner)


def test_fields_become_options_and_come_back_as_objects():
    got: list[tuple] = []

    @with_options
    def paint(
        what: Annotated[str, typer.Argument()],
        *,
        first: Annotated[int, typer.Option()] = 0,
        outer: Outer,
        last: bool = False,
    ) -> None:
        """Paint it."""
        got.append((what, first, outer, last))

    assert list(inspect.signature(paint).parameters) == ["what", "first", "loud", "colour", "times", "last"]
    app = typer.Typer()
    app.command()(paint)
    done = CliRunner().invoke(app, ["door", "--loud", "--times", "3"])
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(app, ["door", "--times", "0"]).exit_code == 2
    paint(what="wall", colour="blue")
    assert got == [("door", 0, Outer(True, Inner("red", 3)), False), ("wall", 0, Outer(False, Inner("blue", 1)), False)]


def test_two_options_of_one_name_are_refused():
    with pytest.raises(ValueError, match="duplicate parameter name: 'colour'"):

        @with_options
        def paint(inner: Inner, colour: str = "") -> None:
            """Paint it."""
