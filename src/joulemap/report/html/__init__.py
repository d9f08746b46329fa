"""The page: view records to one HTML file that needs nothing beside itself. Must not compute a number or read files."""
