"""Reading other people's recordings and our own bundles: bytes in, records out.

One file per format, a registry (``readers``) that alone names them, and the shared ground of all of them: ``text``
(lines and fields), ``values`` (numbers, units, stamps, counters) and ``building`` (columns into traces). A reader
never imports its sibling and knows nothing of analysis, report or command line.
"""
