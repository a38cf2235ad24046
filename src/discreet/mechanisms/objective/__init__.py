"""Objective perturbation: the losses, the exact minimiser, and the mechanism between them."""
