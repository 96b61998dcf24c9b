"""Is the documentation right? Its code blocks run, its links lead somewhere, its tables are those of the code."""
