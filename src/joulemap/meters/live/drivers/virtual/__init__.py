"""Meters that measure nothing: a known power function, a recording played again, a model on request."""
