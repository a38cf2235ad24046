"""Questions to private data, one per file: what is asked, how far one unit can move it, and why.

Nothing outside this package reads the private part of a graph. ``discreet.testing.check_query`` brute-forces a query's
bound; ``tests/contracts`` does so for every one that is defined here.
"""
