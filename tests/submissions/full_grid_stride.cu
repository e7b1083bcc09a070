// expect: full; A fixed number of blocks, each of which takes every fourth tile of rows; exp2 with a folded scale.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>

constexpr int Br = 32;
constexpr int Bc = 32;
constexpr float kLog2e = 1.4426950408889634f;

__constant__ float c_scale;  // log2(e) / sqrt(d)

__global__ void __launch_bounds__(Br) flash_attn_forward_kernel(const float* __restrict__ Q,
                                                                const float* __restrict__ K,
                                                                const float* __restrict__ V,
                                                                float* __restrict__ O, int N, int d)
{
    __shared__ float kv[2][Bc][128];
    for (int tile = blockIdx.x; tile < (N + Br - 1) / Br; tile += gridDim.x) {
        const int row = tile * Br + threadIdx.x;
        float acc[128] = {0.f};
        float m = -HUGE_VALF, l = 0.f;
        for (int start = 0; start < N; start += Bc) {
            const int key = start + threadIdx.x;
            for (int c = 0; c < d; ++c) {
                kv[0][threadIdx.x][c] = key < N ? __ldg(K + key * d + c) : 0.f;
                kv[1][threadIdx.x][c] = key < N ? __ldg(V + key * d + c) : 0.f;
            }
            __syncthreads();
            for (int j = 0; row < N && j < Bc && start + j < N; ++j) {
                float dot = 0.f;
                for (int c = 0; c < d; ++c) dot = __fmaf_rn(__ldg(Q + row * d + c), kv[0][j][c], dot);
                const float s = dot * c_scale;
                const float m_new = fmaxf(m, s);
                const float alpha = exp2f(m - m_new), p = exp2f(s - m_new);
                l = l * alpha + p;
                for (int c = 0; c < d; ++c) acc[c] = acc[c] * alpha + p * kv[1][j][c];
                m = m_new;
            }
            __syncthreads();
        }
        if (row < N) {
            const float inverse = 1.f / l;
            for (int c = 0; c < d; ++c) O[row * d + c] = acc[c] * inverse;
        }
    }
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    const float scale = kLog2e / sqrtf((float)d);
    cudaMemcpyToSymbol(c_scale, &scale, sizeof scale);
    flash_attn_forward_kernel<<<dim3(4, 1, 1), dim3(Br, 1, 1)>>>(d_Q, d_K, d_V, d_O, N, d);
    cudaDeviceSynchronize();
}
