// expect: full; Everything in a namespace, the graded function too; using-declarations and lambdas besides.
#include <algorithm>
#include <cmath>
#include <cuda_runtime.h>

namespace week4 {
namespace {

constexpr int kRows = 64;

__global__ void flash_attn_forward_kernel(float const* Q, float const* K, float const* V, float* O, int N, int d)
{
    __shared__ float tile_k[16][128], tile_v[16][128];
    auto const row = static_cast<int>(blockIdx.x * kRows + threadIdx.x);
    auto const scale = 1.f / std::sqrt(static_cast<float>(d));
    auto at = [d](float const* x, int i, int k) { return x[static_cast<std::size_t>(i) * d + k]; };

    float acc[128] = {};
    float m{-INFINITY}, l{0.f};
    for (int start{0}; start < N; start += 16) {
        for (int x = threadIdx.x; x < 16 * d; x += kRows) {
            auto const r = x / d, c = x % d;
            tile_k[r][c] = start + r < N ? at(K, start + r, c) : 0.f;
            tile_v[r][c] = start + r < N ? at(V, start + r, c) : 0.f;
        }
        __syncthreads();
        if (row < N) {
            for (int j{0}; j < 16 and start + j < N; ++j) {
                float s{0.f};
                for (int c{0}; c < d; ++c) s += at(Q, row, c) * tile_k[j][c];
                s *= scale;
                auto const next = fmaxf(m, s);
                auto const keep = expf(m - next), p = expf(s - next);
                l = l * keep + p;
                for (int c{0}; c < d; ++c) acc[c] = acc[c] * keep + p * tile_v[j][c];
                m = next;
            }
        }
        __syncthreads();
    }
    if (row < N)
        for (int c{0}; c < d; ++c) O[static_cast<std::size_t>(row) * d + c] = acc[c] / l;
}

}  // namespace

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    auto const blocks = std::max(1, (N + kRows - 1) / kRows);
    flash_attn_forward_kernel<<<blocks, kRows>>>(d_Q, d_K, d_V, d_O, N, d);
    cudaDeviceSynchronize();
}

}  // namespace week4
