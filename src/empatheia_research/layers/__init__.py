"""Bricks shared by the responders: attention, gates, positions, encoder and decoder layers.

Nothing here knows a file, a vocabulary or a paper's schedule. Masks are True = keep.
"""
