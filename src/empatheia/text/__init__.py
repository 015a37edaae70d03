"""Text to pieces and back, with character offsets kept: words, tokenisers, word vectors, batches."""
