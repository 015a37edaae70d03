"""Mechanisms of empathy in a reply (EPITOME): the model, its pairs, the exact form of Kim et al.'s metric."""
