"""Replies of several systems to the same contexts."""
