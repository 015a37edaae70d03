"""Recipes to runs: one Trainer subclass, stages, tasks, the runner, and the evaluation of what came out."""
