"""Reflective listening: what carries the feeling is said back, turned to "you"; the feeling is named if it is known.

After Rogers, and Miller and Rollnick's motivational interviewing. Plain Python; the same input gives the same answer.
"""

from empatheia.voices.reflection.compose import reflect
from empatheia.voices.reflection.perceived import Perceived, Reflected

__all__ = ["Perceived", "Reflected", "reflect"]
