"""Published response systems, one file each, behind one lazy table."""

from empatheia.registry import Registry

RESPONDERS = Registry(
    "responders",
    {
        "transformer": "empatheia.responders.transformer:Transformer",
        "multi_trs": "empatheia.responders.multi_trs:MultiTRS",
        "cause_gated": "empatheia.responders.cause_gated:CauseGated",
    },
)

__all__ = ["RESPONDERS"]
