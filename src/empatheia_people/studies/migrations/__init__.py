"""Versions of the tables, run by Alembic."""
