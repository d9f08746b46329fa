"""Recordings of bench instruments: power analysers and meters, logic analysers, oscilloscopes."""
