"""Boards: lines, time, memory, rail. Must not know engines, stages or analysis."""
