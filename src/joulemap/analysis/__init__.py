"""Numbers from records: alignment, attribution, uncertainty, metrics. Pure: records in, records out."""
