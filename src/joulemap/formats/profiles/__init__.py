"""Profiles of runtimes: how long operators take, with or without instants."""
