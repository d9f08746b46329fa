"""Meters inside or beside a device that is reached by its own library or cable."""
