"""Waveforms in volts: logic analysers and oscilloscopes. They become power only by a stated map of channels."""
