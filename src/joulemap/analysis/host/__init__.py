"""Measurements on this machine: from windows of known loads to energies of operators. No clock, file or process."""
