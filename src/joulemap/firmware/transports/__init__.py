"""Links between host and firmware output: how bytes travel, never what they say.

The profile transport may be chatty; the terminal transport must never reset the target and never shares the profile
transport's code path. Must not know stages, engines or analysis.
"""
