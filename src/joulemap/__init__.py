"""joulemap: where the joules of neural-network inference go, with an error bar.

The house is an hourglass: *measure -> bundle -> analyse -> show*. The rooms and their floors are in
``docs/architecture.md``. Importing this package loads none of them.
"""

__version__ = "0.1.0"
