"""Perfetto traces, encoded by hand: counters in W and J, slices with energy, clocks. It must not read a bundle."""
