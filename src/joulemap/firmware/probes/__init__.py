"""Debug probes: program, reset, memory without a reset. Must not know boards by name, engines or stages."""
