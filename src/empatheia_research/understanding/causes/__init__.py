"""Which earlier turns caused an emotion, and which words in them: models, their items, the component ``turns``."""
