"""Networks and how they are trained: on public data, and by noisy steps through the curator."""
