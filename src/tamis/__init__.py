"""Which files of a lakehouse table a query, a join, a rewrite or a DELETE has to touch, and why."""

__version__ = "0.1.0.dev0"

__all__ = ["__version__"]
