"""Sampling in a process of its own, onto absolute deadlines, into a file that a kill cannot spoil.

It must not know what a meter measures, nor how a capture is read again.
"""
