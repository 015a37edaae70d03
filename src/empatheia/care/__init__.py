"""Care: a check in front of everything that answers. See ``docs/concepts/care.md``.

>>> from empatheia.care import assess
>>> assess("I want to kill myself.").level  # doctest: +SKIP
'crisis'
"""

from __future__ import annotations

from empatheia.care.checking import Care, Checked
from empatheia.care.counting import Counter
from empatheia.care.detector import Detector, assess
from empatheia.care.guard import Guard, guarded, guarded_stream
from empatheia.care.policy import Policy
from empatheia.care.replies import Replies, Wording
from empatheia.care.resources import Resources
from empatheia.records.danger import ABOUT, KINDS, LEVELS, Assessment

__all__ = [
    "ABOUT",
    "KINDS",
    "LEVELS",
    "Assessment",
    "Care",
    "Checked",
    "Counter",
    "Detector",
    "Guard",
    "Policy",
    "Replies",
    "Resources",
    "Wording",
    "assess",
    "guarded",
    "guarded_stream",
]
