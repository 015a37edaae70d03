"""Voices over models in this process: published responders, language models, ready replies; focus and scores."""
