"""Ways to choose a reply that transformers' ``generate()`` lacks, and the choice among ready replies."""
