"""Probes of the machine under a measurement, and the doctor that reads them out; they must not know a measurement."""
