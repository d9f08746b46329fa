"""Recordings of Android devices: Perfetto traces and batterystats."""
