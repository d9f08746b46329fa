"""Captures of live meters, read again: whole ones, and what a killed recording left. It must not know a meter."""
