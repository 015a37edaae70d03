"""Which words of a text carry its emotion: questions, scorers, the generative emotion estimator, gold words."""
