"""What people adds to ``empatheia doctor``: the database of studies and the tools of curation, used once."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from empatheia.cli.checks import Check, DoctorChecks, Trial


def _study() -> str:
    import sqlalchemy

    importlib.import_module("empatheia_people.studies.collecting")
    with sqlalchemy.create_engine("sqlite://").connect() as connection:
        return f"a database says {connection.scalar(sqlalchemy.text('select 1'))}"


def _curate() -> str:
    import dask
    import pyarrow
    import pysubs2

    n_lines = len(pysubs2.SSAFile.from_string("1\n00:00:01,000 --> 00:00:02,000\nHi.\n"))
    total = dask.delayed(sum)([n_lines, 1]).compute(scheduler="synchronous")
    return f"{total} rows of {pyarrow.table({'a': [1, 2]}).num_rows}"


def _trials() -> Iterator[Trial]:
    remedy = "pip install --upgrade 'empatheia[people]'"
    yield Trial("use: studies", _study, remedy)
    yield Trial("use: curation", _curate, remedy)


def _look() -> Iterator[Check]:
    yield from ()


CHECKS = DoctorChecks(_look, _trials, {})
