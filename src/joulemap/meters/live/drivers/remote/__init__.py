"""Meters behind a network address or a service processor."""
