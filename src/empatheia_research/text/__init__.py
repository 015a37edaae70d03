"""Texts as models read them: pieces, vocabularies, batches of tensors."""
