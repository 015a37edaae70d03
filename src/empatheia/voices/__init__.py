"""Who writes replies: what every voice can do, and those that need no weights."""
