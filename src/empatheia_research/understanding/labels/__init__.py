"""Labels of texts and turns: classifiers on an encoder, word vectors or frozen features; the next turn's label."""
