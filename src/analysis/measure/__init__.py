"""Prompts by regime and depth, one sample as a list of steps, grids that resume."""
