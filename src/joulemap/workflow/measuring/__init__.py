"""What ``joulemap.measure`` is made of beside the measurement itself. It must not know a meter."""
