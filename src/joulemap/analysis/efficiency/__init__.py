"""Figures of merit from energies, times and counts. It knows no trace, file or screen."""
