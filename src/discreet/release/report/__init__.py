"""Pages for people who decide: a release on one page, and bench results as tables and figures."""
