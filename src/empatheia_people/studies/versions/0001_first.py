"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes them."""
    op.create_table(
        "hit",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("orders", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_hit")),
    )
    op.create_table(
        "item",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("set", sa.Text(), nullable=False),
        sa.Column("context", sa.JSON(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=True),
        sa.Column("emotion", sa.Text(), nullable=False),
        sa.Column("candidates", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item")),
        sa.UniqueConstraint("key", name=op.f("uq_item_key")),
    )
    op.create_table(
        "pair",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("second", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("chat", sa.Integer(), nullable=False),
        sa.Column("since", sa.Float(precision=53), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pair")),
    )
    op.create_index(op.f("ix_pair_state"), "pair", ["state"], unique=False)
    op.create_table(
        "study",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("design", sa.JSON(), nullable=False),
        sa.Column("systems", sa.JSON(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("closed", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
    )
    op.create_table(
        "worker",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("consented", sa.Float(precision=53), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("passed", sa.Float(precision=53), nullable=True),
        sa.Column("withdrawn", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker")),
        sa.UniqueConstraint("digest", name=op.f("uq_worker_digest")),
    )
    op.create_table(
        "assignment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Integer(), nullable=False),
        sa.Column("hit", sa.Integer(), nullable=False),
        sa.Column("seat", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("lease_until", sa.Float(precision=53), nullable=False),
        sa.Column("started", sa.Float(precision=53), nullable=False),
        sa.Column("submitted", sa.Float(precision=53), nullable=True),
        sa.Column("points", sa.Integer(), nullable=True),
        sa.Column("is_attentive", sa.Boolean(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["hit"], ["hit.number"], name=op.f("fk_assignment_hit")),
        sa.ForeignKeyConstraint(["worker"], ["worker.id"], name=op.f("fk_assignment_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignment")),
        sa.UniqueConstraint("worker", "hit", name=op.f("uq_assignment_worker_hit")),
    )
    op.create_index(op.f("ix_assignment_hit"), "assignment", ["hit"], unique=False)
    op.create_index("ix_assignment_hit_state", "assignment", ["hit", "state"], unique=False)
    op.create_index(op.f("ix_assignment_state"), "assignment", ["state"], unique=False)
    op.create_index(op.f("ix_assignment_worker"), "assignment", ["worker"], unique=False)
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("worker", sa.Integer(), nullable=True),
        sa.Column("assignment", sa.Integer(), nullable=True),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("client", sa.String(length=64), nullable=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["worker"], ["worker.id"], name=op.f("fk_event_worker"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
        sa.UniqueConstraint("assignment", "client", name=op.f("uq_event_assignment_client")),
    )
    op.create_index(op.f("ix_event_assignment"), "event", ["assignment"], unique=False)
    op.create_index(op.f("ix_event_kind"), "event", ["kind"], unique=False)
    op.create_index(op.f("ix_event_worker"), "event", ["worker"], unique=False)
    op.create_table(
        "message",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("room", sa.String(length=64), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Integer(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("client", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["worker"], ["worker.id"], name=op.f("fk_message_worker"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_message")),
        sa.UniqueConstraint("room", "client", name=op.f("uq_message_room_client")),
        sa.UniqueConstraint("room", "place", name=op.f("uq_message_room_place")),
    )
    op.create_index(op.f("ix_message_room"), "message", ["room"], unique=False)
    op.create_index(op.f("ix_message_worker"), "message", ["worker"], unique=False)
    op.create_table(
        "participant",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("offered", sa.JSON(), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("situation", sa.Text(), nullable=False),
        sa.Column("pair", sa.Integer(), nullable=True),
        sa.Column("seen", sa.Float(precision=53), nullable=False),
        sa.Column("since", sa.Float(precision=53), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("flags", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["pair"], ["pair.id"], name=op.f("fk_participant_pair")),
        sa.ForeignKeyConstraint(["worker"], ["worker.id"], name=op.f("fk_participant_worker"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_participant")),
    )
    op.create_index(op.f("ix_participant_pair"), "participant", ["pair"], unique=False)
    op.create_index(op.f("ix_participant_state"), "participant", ["state"], unique=False)
    op.create_index(op.f("ix_participant_worker"), "participant", ["worker"], unique=False)
    op.create_table(
        "task",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("hit", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("cards", sa.JSON(), nullable=False),
        sa.Column("is_bonus", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["hit"], ["hit.number"], name=op.f("fk_task_hit")),
        sa.ForeignKeyConstraint(["item"], ["item.id"], name=op.f("fk_task_item")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task")),
        sa.UniqueConstraint("hit", "place", name=op.f("uq_task_hit_place")),
    )
    op.create_index(op.f("ix_task_hit"), "task", ["hit"], unique=False)
    op.create_index(op.f("ix_task_item"), "task", ["item"], unique=False)
    op.create_table(
        "rating",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment", sa.Integer(), nullable=False),
        sa.Column("task", sa.Integer(), nullable=False),
        sa.Column("card", sa.Integer(), nullable=False),
        sa.Column("criterion", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("first", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment"], ["assignment.id"], name=op.f("fk_rating_assignment"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["task"], ["task.id"], name=op.f("fk_rating_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rating")),
        sa.UniqueConstraint(
            "assignment", "task", "card", "criterion", name=op.f("uq_rating_assignment_task_card_criterion")
        ),
    )
    op.create_index(op.f("ix_rating_assignment"), "rating", ["assignment"], unique=False)
    op.create_index(op.f("ix_rating_task"), "rating", ["task"], unique=False)


def downgrade() -> None:
    """Takes them away."""
    op.drop_table("rating")
    op.drop_table("task")
    op.drop_table("participant")
    op.drop_table("message")
    op.drop_table("event")
    op.drop_table("assignment")
    op.drop_table("worker")
    op.drop_table("study")
    op.drop_table("pair")
    op.drop_table("item")
    op.drop_table("hit")
