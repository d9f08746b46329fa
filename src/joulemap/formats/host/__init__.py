"""Logs of computers: operating systems' and processors' own power meters."""
