"""joulemap: where the joules of neural-network inference go, with an error bar.

The house is an hourglass: *measure -> bundle -> analyse -> show*. The rooms and their floors are in
``docs/architecture.md``. Importing this package loads none of them: ``joulemap.measure``, ``joulemap.mark`` and the
other names for programs are loaded when they are first used (``docs/api.md``).
"""

from joulemap.exports import load_export as __getattr__  # noqa: F401  what a module asks for names that it lacks

__version__ = "0.1.0"
