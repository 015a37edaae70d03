"""Project: commonsense inferences behind one interface, from a model, a table, or a file.

``provider`` the interface and what combines providers; ``generation`` any encoder-decoder in COMET's prompt form;
``index`` and ``nearest`` look-up in ATOMIC; ``cache`` what was computed before; ``heads`` which text is asked about;
``turns`` the component for conversations.
"""

from empatheia_research.understanding.inferences.cache import CachedInferences, fill_cache
from empatheia_research.understanding.inferences.index import TupleIndex, build_index
from empatheia_research.understanding.inferences.nearest import NearestInferences
from empatheia_research.understanding.inferences.provider import Fallback, Filtered, Inferences, NoInferences, Tails
from empatheia_research.understanding.inferences.turns import InferencesOfTurns, open_provider

__all__ = [
    "CachedInferences",
    "Fallback",
    "Filtered",
    "Inferences",
    "InferencesOfTurns",
    "NearestInferences",
    "NoInferences",
    "Tails",
    "TupleIndex",
    "build_index",
    "fill_cache",
    "open_provider",
]
