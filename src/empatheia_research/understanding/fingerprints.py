"""Short hashes of settings: what is kept on disk under one is found again only by the same settings."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def fingerprint_of(**settings: Any) -> str:
    """16 hex digits of settings that JSON can write."""
    text = json.dumps(settings, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
