"""What candidates are ranked by, each term a file's class; see :mod:`empatheia.listener.terms.term`."""
