"""The command line as ``python -m joulemap``."""

from joulemap.cli.main import main

if __name__ == "__main__":
    main()
