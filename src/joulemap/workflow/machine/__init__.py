"""Probes of the machine under a measurement: each reads files below a root folder and knows nothing of a runtime."""
