"""Logs of energy trackers and smart plugs."""
