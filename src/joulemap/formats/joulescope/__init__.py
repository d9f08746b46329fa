"""Joulescope recordings: JLS files of both versions and the exports of its user interface."""
