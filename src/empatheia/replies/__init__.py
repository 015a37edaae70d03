"""Files of replies, read and scored."""
