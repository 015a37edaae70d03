"""The exceptions a caller can meet; every message says what was found, what is accepted and what to do.

EmpatheiaError                 base; a program that embeds the package catches this one
├── ConfigError                a recipe, an override or a command line value is wrong
├── DataError                  a corpus file or a user's input cannot be used
│   ├── UnreadableFilesError   too many of many files cannot be read (exit code 3)
│   └── InputTypeError         what was handed in is of a kind that cannot be read; a TypeError, too
├── CheckpointError            a model folder is missing, truncated, foreign or does not fit its vocabulary
├── TrainingError              a training no longer learns anything that can be used
├── DecodingError              a generation setting cannot be honoured
├── EndpointError              a remote model refuses, cannot be reached or answers nonsense
├── MissingResourceError       data or weights are not on this machine (exit code 3)
└── MissingDependencyError     an optional Python package is not installed (exit code 3)
"""

from __future__ import annotations


class EmpatheiaError(Exception):
    """Base of all errors raised on purpose by this package.

    What a message quotes may be of any length; a message is not: its middle is left out.
    """

    exit_code = 1
    longest = 2000

    def __str__(self) -> str:
        message = super().__str__()
        if len(message) <= self.longest:
            return message
        half = self.longest // 2
        return f"{message[:half]} [... {len(message) - 2 * half:,} characters ...] {message[-half:]}"


class ConfigError(EmpatheiaError):
    """A recipe, an override or a command-line value is wrong."""

    exit_code = 2


class DataError(EmpatheiaError):
    """A corpus file or a user's input cannot be used."""


class UnreadableFilesError(DataError):
    """More of many files cannot be read than was allowed; the message says where they are listed."""

    exit_code = 3


class InputTypeError(DataError, TypeError):
    """What was handed in is of a kind that cannot be read; the message says what can."""


class CheckpointError(EmpatheiaError):
    """A model folder is missing, truncated, foreign, or does not fit its vocabulary."""


class TrainingError(EmpatheiaError):
    """A training no longer learns anything that can be used; what it had before is kept."""


class DecodingError(EmpatheiaError):
    """A generation setting cannot be honoured."""


class EndpointError(EmpatheiaError):
    """A remote model refuses, cannot be reached, or answers what cannot be read."""


class MissingResourceError(EmpatheiaError):
    """Data or weights are not on this machine; the message names the command that gets them."""

    exit_code = 3


class MissingDependencyError(EmpatheiaError):
    """An optional package is not installed; the message names the pip command."""

    exit_code = 3
