"""Published response systems, one file each, behind one lazy table."""

from empatheia.registry import Registry

RESPONDERS = Registry(
    "responders",
    {
        "transformer": "empatheia_research.responders.transformer:Transformer",
        "multi_trs": "empatheia_research.responders.multi_trs:MultiTRS",
        "moel": "empatheia_research.responders.moel:MoEL",
        "mime": "empatheia_research.responders.mime:MIME",
        "cem": "empatheia_research.responders.cem:CEM",
        "imagine": "empatheia_research.responders.imagine:Imagine",
        "empdg": "empatheia_research.responders.empdg:EmpDG",
        "kemp": "empatheia_research.responders.kemp:KEMP",
        "mk_edg": "empatheia_research.responders.kemp:KEMP",  # KEMP's earlier name
        "cause_gated": "empatheia_research.responders.cause_gated:CauseGated",
        "rashkin_generation": "empatheia_research.responders.rashkin_generation:RashkinGeneration",
        "rashkin_retrieval": "empatheia_research.responders.rashkin_retrieval:RashkinRetrieval",
        "meed2": "empatheia_research.responders.meed2:MEED2",
        "language_model": "empatheia_research.responders.language_model:LanguageModel",
    },
)

__all__ = ["RESPONDERS"]
