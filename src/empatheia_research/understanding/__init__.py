"""What is understood, as models learn it: labels, causes, mechanisms, inferences, words."""
