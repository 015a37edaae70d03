"""Run by Alembic with the open connection of a store."""

from __future__ import annotations

from alembic import context

from empatheia_people.studies.tables import Base

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
