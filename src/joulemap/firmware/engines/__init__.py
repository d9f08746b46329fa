"""Inference engines: a model file in, C sources and an oracle's output out. Must not know boards or stages."""
