"""Meters of the running machine: discovered, read by polling, sampled by a process of its own."""
