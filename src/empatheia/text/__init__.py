"""Text to pieces and back, with character offsets: words, tokenisers, vectors, batches."""
