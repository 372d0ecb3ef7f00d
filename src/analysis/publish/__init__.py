"""Tables, charts, executed notebooks and the pages they become."""
