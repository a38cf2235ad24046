"""Faults planted in methods and mechanisms, each with the check that must catch it named beforehand."""
