"""SAGE: a read-only server for the knowledge a team keeps as markdown in its repository."""

__version__ = "0.1.0"
