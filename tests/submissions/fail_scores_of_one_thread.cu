// expect: fail close, finite; score 0..20; Each lane keeps its own maximum: no reduction over the warp.
#include <cuda_runtime.h>
#include <cmath>

namespace {

constexpr int WARPS = 8;
constexpr int TILE = 32;
constexpr unsigned FULL = 0xffffffffu;

__device__ float warp_max(float x) {
  for (int s = 16; s > 0; s >>= 1) x = fmaxf(x, __shfl_xor_sync(FULL, x, s));
  return x;
}

__device__ float warp_sum(float x) {
  for (int s = 16; s > 0; s >>= 1) x += __shfl_xor_sync(FULL, x, s);
  return x;
}

}  // namespace

__global__ void flash_attn_forward_kernel(const float *Q, const float *K, const float *V, float *O, int N, int d) {
  __shared__ float q_s[WARPS][128];
  __shared__ float k_s[TILE][129];
  __shared__ float v_s[TILE][128];
  const int lane = threadIdx.x, warp = threadIdx.y;
  const int row = blockIdx.x * WARPS + warp;
  const float scale = 1.f / sqrtf(static_cast<float>(d));

  for (int c = lane; c < d; c += 32) q_s[warp][c] = row < N ? Q[row * d + c] : 0.f;
  float m = -INFINITY, l = 0.f;
  float o[4] = {0.f, 0.f, 0.f, 0.f};

  for (int start = 0; start < N; start += TILE) {
    for (int r = warp; r < TILE; r += WARPS) {
      for (int c = lane; c < d; c += 32) {
        k_s[r][c] = start + r < N ? K[(start + r) * d + c] : 0.f;
        v_s[r][c] = start + r < N ? V[(start + r) * d + c] : 0.f;
      }
    }
    __syncthreads();

    // lane j owns key start + j
    float s = 0.f;
    for (int c = 0; c < d; ++c) s += q_s[warp][c] * k_s[lane][c];
    s = start + lane < N ? s * scale : -INFINITY;

    const float m_new = fmaxf(m, s);
    const float p = expf(s - m_new);
    const float alpha = expf(m - m_new);
    l = l * alpha + warp_sum(p);
    for (int i = 0; i < 4; ++i) o[i] *= alpha;
    for (int j = 0; j < TILE; ++j) {
      const float p_j = __shfl_sync(FULL, p, j);
      for (int i = 0; i < 4; ++i)
        if (lane + 32 * i < d) o[i] += p_j * v_s[j][lane + 32 * i];
    }
    m = m_new;
    __syncthreads();
  }

  if (row < N)
    for (int i = 0; i < 4; ++i)
      if (lane + 32 * i < d) O[row * d + lane + 32 * i] = o[i] / l;
}

void flash_attn_forward_cuda(const float *d_Q, const float *d_K, const float *d_V, float *d_O, int N, int d) {
  dim3 block(32, WARPS);
  dim3 grid((N + WARPS - 1) / WARPS);
  flash_attn_forward_kernel<<<grid, block>>>(d_Q, d_K, d_V, d_O, N, d);
  cudaDeviceSynchronize();
}
