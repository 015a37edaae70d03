"""Training and measuring published systems: corpora, recipes, models, reproduction."""
