"""Adapters: one public API a file, without Django."""
