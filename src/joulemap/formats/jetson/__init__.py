"""Logs of Jetson boards: tegrastats and jtop."""
