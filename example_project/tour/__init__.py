"""How does the example show itself? A stage of real processes, and a tour over it that verifies each step."""
