"""Texts, words and pieces as vectors, and the cache that keeps them."""
