"""flashgrade: grades CUDA FlashAttention assignments and explains what is wrong."""

__version__ = "0.1.0"
