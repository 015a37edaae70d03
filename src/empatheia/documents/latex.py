"""Tables for LaTeX, in the style of the package ``booktabs``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_WRITTEN = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "\n": " ",
    }
)


def for_latex(text: str) -> str:
    r"""A text with the characters written out that LaTeX would obey.

    >>> for_latex("gpt_4 & 50 %")
    'gpt\\_4 \\& 50 \\%'
    """
    return text.translate(_WRITTEN)


def latex_table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A ``tabular`` with a line for each row; the first column is text, the others numbers.

    Args:
        heads: Of the columns.
        rows: Cells, as plain text.
        caption: A comment above it.
    """
    lines = [f"% {caption}"] if caption else []
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", r"\toprule"]
    lines += [" & ".join(map(for_latex, heads)) + r" \\", r"\midrule"]
    lines += [" & ".join(map(for_latex, row)) + r" \\" for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])
