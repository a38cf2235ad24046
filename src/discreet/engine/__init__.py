"""Where sums over edges run when a graph lies in partitions: on the workers of a Dask cluster.

Nothing else is distributed. The curator is one process: it holds the noise and hands out answers. Workers read blocks
of edges and add up rows; they draw nothing and decide nothing, so a block that is computed twice is computed alike.
"""
