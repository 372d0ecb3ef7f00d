"""Does the instrument tell the truth? Servers of known acceptance, real prompts as a population, duels with oneself."""
