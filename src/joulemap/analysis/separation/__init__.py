"""Rows whose slices are shorter than a sample, told apart by least squares over many samples at many phases."""
