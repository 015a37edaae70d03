"""What is felt in each turn, and why: parts that fill one record."""
