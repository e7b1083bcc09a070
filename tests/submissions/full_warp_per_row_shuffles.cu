// expect: full; A warp per row: the lanes share the columns and add up with shuffles. No shared memory.
#include <cuda_runtime.h>
#include <cfloat>
#include <cmath>

static constexpr unsigned kFullMask = 0xffffffffu;
static constexpr int kWarpsPerBlock = 4;

__device__ __forceinline__ float warp_sum(float x)
{
    for (int offset = 16; offset > 0; offset >>= 1) x += __shfl_xor_sync(kFullMask, x, offset);
    return x;
}

__global__ void flash_attn_forward_kernel(const float* __restrict__ q, const float* __restrict__ k,
                                          const float* __restrict__ v, float* __restrict__ o, int n, int dim)
{
    const int lane = threadIdx.x % warpSize;
    const int row = blockIdx.x * kWarpsPerBlock + threadIdx.x / warpSize;
    if (row >= n) return;  // the whole warp leaves, and there is no barrier to miss

    float query[4], out[4] = {0.f, 0.f, 0.f, 0.f};
    for (int c = 0; c < 4; ++c) query[c] = lane + 32 * c < dim ? q[row * dim + lane + 32 * c] : 0.f;
    const float scale = rsqrtf(static_cast<float>(dim));
    float running_max = -INFINITY, running_sum = 0.f;

    for (int j = 0; j < n; ++j) {
        float part = 0.f;
        for (int c = 0; c < 4; ++c)
            if (lane + 32 * c < dim) part += query[c] * k[j * dim + lane + 32 * c];
        const float score = warp_sum(part) * scale;
        const float new_max = fmaxf(running_max, score);
        const float fade = expf(running_max - new_max);
        const float weight = expf(score - new_max);
        running_sum = running_sum * fade + weight;
        for (int c = 0; c < 4; ++c)
            if (lane + 32 * c < dim) out[c] = out[c] * fade + weight * v[j * dim + lane + 32 * c];
        running_max = new_max;
    }
    for (int c = 0; c < 4; ++c)
        if (lane + 32 * c < dim) o[row * dim + lane + 32 * c] = out[c] / running_sum;
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    dim3 grid((N + kWarpsPerBlock - 1) / kWarpsPerBlock);
    flash_attn_forward_kernel<<<grid, 32 * kWarpsPerBlock>>>(d_Q, d_K, d_V, d_O, N, d);
    cudaDeviceSynchronize();
}
