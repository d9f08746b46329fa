"""Tables of unknown origin: CSV, Parquet and Arrow, by the map of columns and units that the user states."""
