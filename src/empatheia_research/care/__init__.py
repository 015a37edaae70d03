"""Training of the check for danger."""
