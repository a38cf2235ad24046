"""Releases after they were made: load them, and write what they predict."""
