"""What a cache gives back, bit by bit, and what speculation does to the emitted text; in process, on small models."""
