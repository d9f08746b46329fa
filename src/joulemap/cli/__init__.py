"""The command line: one ``<verb>_cmd.py`` per command, each of which parses, calls, renders and picks an exit code.

Must not know how anything is measured or computed; loads a command's own modules only when that command runs.
"""
