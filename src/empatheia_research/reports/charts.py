"""What all pictures share: one look, colours that differ in lightness too, PNG and SVG.

Colours are those of Okabe and Ito (2008), which people with any colour vision can tell apart; every series also has a
marker or a line style of its own, so that nothing is lost in grey.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from empatheia.errors import DataError, MissingDependencyError

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK, SOFT, RULE = "#1d2430", "#566072", "#d5dae3"
SUFFIXES = (".png", ".svg")
_LOOK = Path(__file__).with_suffix(".mplstyle")


def chart(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Gives a function that draws the common look, and a clear error where matplotlib is missing.

    Raises:
        MissingDependencyError: From the function, when matplotlib is not installed.
    """

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        try:
            from matplotlib import style
        except ImportError:
            raise MissingDependencyError(
                'pictures need matplotlib. Install it with: pip install "empatheia[plots]"'
            ) from None
        with style.context(_LOOK):
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float, height: float, **panels: Any) -> tuple[Figure, np.ndarray]:
    """An empty picture that needs no display.

    Args:
        width: Inches.
        height: Inches.
        **panels: Of ``Figure.subplots``.

    Returns:
        The figure, and its panels as an array of two dimensions.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(squeeze=False, **panels)


def save(figure: Figure, path: str | Path) -> tuple[Path, ...]:
    """Writes a picture; the same figure gives the same bytes.

    Args:
        figure: From one of the chart functions.
        path: A file that ends in ``.png`` or ``.svg``; another name gets both endings.

    Returns:
        What was written.

    Raises:
        DataError: The folder does not exist, or the path is a folder.
    """
    from matplotlib import style

    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file, e.g. {path / 'chart.png'}.")
    if not path.absolute().parent.is_dir():
        raise DataError(f"the folder {path.absolute().parent} does not exist; create it first.")
    ends = path.suffix.lower() in SUFFIXES
    files = (path,) if ends else tuple(path.with_name(path.name + suffix) for suffix in SUFFIXES)
    with style.context(_LOOK):
        for file in files:
            quiet = {"Date": None} if file.suffix.lower() == ".svg" else {"Software": None}
            part = file.with_name(f"{file.name}.{os.getpid()}.part")
            try:
                figure.savefig(part, dpi=160, facecolor="white", metadata=quiet, format=file.suffix[1:].lower())
                part.replace(file)
            finally:
                part.unlink(missing_ok=True)
    return files


def legend_above(axes: Axes, columns: int = 4) -> None:
    """The legend on top of a panel, where it hides nothing."""
    handles, _ = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=columns,
            borderaxespad=0.2,
            handlelength=1.6,
            columnspacing=1.2,
        )
