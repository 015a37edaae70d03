"""What the extra ``study`` brings, asked for where it is first needed."""

from __future__ import annotations

from importlib import import_module

from empatheia.errors import MissingDependencyError

GET = 'pip install "empatheia[people]"'


def need(*modules: str) -> None:
    """Checks that packages of the extra are installed.

    Raises:
        MissingDependencyError: One is not; names the command.
    """
    for name in modules:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            raise MissingDependencyError(f"studies need {error.name}. Install it with: {GET}") from None
