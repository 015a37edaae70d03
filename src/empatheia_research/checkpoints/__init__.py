"""A model folder found, checked and opened: its manifest, its network, how it reads and how it writes."""
