"""What the rooms of the house pass on: dialogues, analyses, danger, replies; frozen, no models."""
