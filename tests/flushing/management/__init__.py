"""The commands of the tests' own."""
