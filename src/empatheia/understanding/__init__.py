"""Models that say what a person feels and why; listing their names imports nothing heavy."""

from empatheia.registry import Registry

UNDERSTANDERS = Registry(
    "understanders",
    {"cause_entailment": "empatheia.understanding.cause_entailment:CauseEntailment"},
)

__all__ = ["UNDERSTANDERS"]
