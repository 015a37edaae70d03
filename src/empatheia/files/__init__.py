"""Files of texts and conversations in the forms people have: one reader for analysis, training data and curation."""
