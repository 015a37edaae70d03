"""A listener of five steps, each replaceable: perceive, explain, project, react, express; and what it remembers."""
