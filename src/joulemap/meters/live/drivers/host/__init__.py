"""Meters that the operating system of this machine offers."""
