"""What a person feels, how pleasant it is, and which few words caused it: one encoder, three heads."""
