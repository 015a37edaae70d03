"""Writes docs/cli.md from the commands' own help texts; ``--check`` only says whether it is current."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from empatheia.cli import listed_commands, load_command, main

PAGE = Path(__file__).with_name("cli.md")
HEAD = """\
# Command line

<!-- Written by docs/generate_cli.py from the commands' help; change the help, then run it again. -->

Results go to stdout, everything else to stderr. Errors are one line with cause and remedy.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | the input or a model cannot be used |
| 2 | the command line or a recipe is wrong |
| 3 | data, weights or an optional package are missing, or too many files cannot be read; the message says what to do |
| 130 | interrupted |

`EMPATHEIA_DATA` names the folder of the corpora, `EMPATHEIA_DEBUG=1` shows tracebacks, `NO_COLOR=1` drops
colours.
"""


def command_lines() -> Iterator[list[str]]:
    """Every command and subcommand as the words that call it."""
    for name in listed_commands():
        yield [name]
        for child in getattr(load_command(name), "commands", {}):
            yield [name, child]


def help_of(words: list[str]) -> str:
    """What ``empatheia WORDS --help`` prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def page() -> str:
    """The whole page."""
    os.environ.update(COLUMNS="100", TERM="dumb", NO_COLOR="1")
    parts = [HEAD, f"```text\n{help_of([])}\n```\n"]
    for words in command_lines():
        parts.append(f"{'##' if len(words) == 1 else '###'} {' '.join(words)}\n\n```text\n{help_of(words)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit(f"{PAGE.name} is not current: run python docs/{Path(__file__).name}")
    else:
        PAGE.write_text(text, encoding="utf-8")
