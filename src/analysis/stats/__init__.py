"""Acceptance in its three meanings, intervals, ratios, step cost, break-even. Arrays in, intervals out; no I/O."""
