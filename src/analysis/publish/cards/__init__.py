"""The pages of the two published cards: one module a chapter. They need no engine."""
