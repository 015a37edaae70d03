"""Recipes: YAML files that determine a run completely; loading, overrides, validation."""
