"""Mechanisms that run where a record lives: reports of features and of a label."""
