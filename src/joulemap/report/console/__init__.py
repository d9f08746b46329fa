"""Rows to text for a terminal or a pipe. Must not compute a number."""
