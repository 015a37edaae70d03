"""Published response systems, one file each, behind one lazy table."""

from empatheia.registry import Registry

RESPONDERS = Registry(
    "responders",
    {
        "transformer": "empatheia.responders.transformer:Transformer",
        "multi_trs": "empatheia.responders.multi_trs:MultiTRS",
        "moel": "empatheia.responders.moel:MoEL",
        "mime": "empatheia.responders.mime:MIME",
        "cem": "empatheia.responders.cem:CEM",
        "imagine": "empatheia.responders.imagine:Imagine",
        "empdg": "empatheia.responders.empdg:EmpDG",
        "kemp": "empatheia.responders.kemp:KEMP",
        "mk_edg": "empatheia.responders.kemp:KEMP",  # KEMP's earlier name
        "cause_gated": "empatheia.responders.cause_gated:CauseGated",
        "rashkin_generation": "empatheia.responders.rashkin_generation:RashkinGeneration",
        "rashkin_retrieval": "empatheia.responders.rashkin_retrieval:RashkinRetrieval",
        "meed2": "empatheia.responders.meed2:MEED2",
        "language_model": "empatheia.responders.language_model:LanguageModel",
    },
)

__all__ = ["RESPONDERS"]
