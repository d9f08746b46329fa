"""Logs of graphics cards: nvidia-smi, DCGM, rocm-smi, amd-smi, nvtop."""
