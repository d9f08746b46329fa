"""Perfetto traces, encoded by hand: counters in W and J, slices with their energy, clocks. It must not read a bundle."""
