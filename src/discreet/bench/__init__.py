"""The bench: suites of trials, a runner whose results last, tables and figures. Nothing heavy is imported here."""
