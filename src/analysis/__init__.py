"""Does the Drafter Pay? Measurements of speculative decoding in llama.cpp, with error bars and corrections.

The rooms, from the ground up: `records`, `stats` and `convert`, `launch` and `gates`, `measure`, `evidence` and
`drafter`, `publish`, `cli`. A room imports only from rooms below it.
"""

__version__ = "0.1.0"
