"""What flash_attn_forward_cuda has to compute: O = softmax(Q K^T / sqrt(d)) V, in float64."""

from grader.numerics import attention


def forward(Q, K, V, N, d):
    """Return O (N, d) for Q, K and V (N, d)."""
    return {"O": attention(Q, K, V)}
