"""What ships beside the packages: recipes and the records of their runs, in a checkout and in an installation."""

from __future__ import annotations

from pathlib import Path

from empatheia.errors import MissingResourceError

_INSTALLED = Path(__file__).with_name("shipped")
_CHECKOUT = Path(__file__).parents[2]


def shipped_root(name: str) -> Path | None:
    """``recipes`` or ``results`` of this installation: in the package, or at the top of the checkout; None if gone."""
    return next((root / name for root in (_INSTALLED, _CHECKOUT) if (root / name).is_dir()), None)


def shipped_path(place: str | Path) -> Path:
    """A file or folder as given; where it is not there and its path begins with ``recipes`` or ``results``, our own."""
    path = Path(place)
    if path.is_absolute() or path.parts[:1] not in (("recipes",), ("results",)) or path.exists():
        return path
    return next((found for root in (_INSTALLED, _CHECKOUT) if (found := root / path).exists()), path)


def recipes_root() -> Path:
    """The folder of recipes.

    Raises:
        MissingResourceError: This installation has none.
    """
    if (root := shipped_root("recipes")) is None:
        raise MissingResourceError(
            "this installation has no recipes. Reinstall the package: pip install --upgrade empatheia"
        )
    return root


def results_root() -> Path | None:
    """The folder of run records that came with this installation; None where there is none."""
    return shipped_root("results")
