"""The only conductor: joins the rooms into one saved bundle.

``runner`` knows how stages run, ``profile`` which ones; the rest turns records into sections of the bundle. Must not
know a flag, a screen or how a stage does its work.
"""
