"""The published cards as tables, the claims that follow from them, and the corrections since."""
