"""Resilience patterns: one a file, without Django."""
