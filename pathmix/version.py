"""The version, read by the build without importing anything else."""

__version__ = "0.2.0"
