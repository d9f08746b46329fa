"""Waveforms as a page draws them: bins, excerpts, worst windows, folds; of samples in memory or in their file. Pure."""
