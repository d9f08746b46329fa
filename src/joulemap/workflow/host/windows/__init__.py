"""Windows in which one load runs again and again: what there is room for, its sessions, and the stages."""
