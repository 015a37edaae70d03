"""Two systems' replies compared by a language model, pair by pair.

What comes out is a model's opinion. It is marked as such wherever it is written, is no entry of ``METRICS``, and never
enters the automatic tables.
"""
