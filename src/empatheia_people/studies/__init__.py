"""Studies: what people say of systems' replies, and dialogues that people hold, from a design file to a report.

``empatheia study init DESIGN --outputs A --outputs B --db s.db``, ``study serve s.db``, ``study report s.db``.
"""
