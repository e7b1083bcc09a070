// expect: full; A template on the head dimension, rounded up to a multiple of 32, chosen at run time.
#include <cuda_runtime.h>

#include <cmath>
#include <stdexcept>

template <int D, int BR = 32, int BC = 32>
__global__ void __launch_bounds__(BR)
flash_attn_forward_kernel(const float* __restrict__ Q, const float* __restrict__ K, const float* __restrict__ V,
                          float* __restrict__ O, int N, int d)
{
    __shared__ float K_j[BC * D];
    __shared__ float V_j[BC * D];
    const int row = blockIdx.x * BR + threadIdx.x;
    float q_i[D];
    float O_i[D];
#pragma unroll
    for (int k = 0; k < D; ++k) {
        q_i[k] = (row < N && k < d) ? Q[row * d + k] * rsqrtf(float(d)) : 0.f;
        O_i[k] = 0.f;
    }
    float m_i = -INFINITY;
    float l_i = 0.f;
    for (int j0 = 0; j0 < N; j0 += BC) {
        for (int x = threadIdx.x; x < BC * D; x += BR) {
            const int key = j0 + x / D, k = x % D;
            const bool exists = key < N && k < d;
            K_j[x] = exists ? K[key * d + k] : 0.f;
            V_j[x] = exists ? V[key * d + k] : 0.f;
        }
        __syncthreads();
        float S_ij[BC];
        float m_new = m_i;
        for (int j = 0; j < BC; ++j) {
            float s = 0.f;
#pragma unroll
            for (int k = 0; k < D; ++k) s = fmaf(q_i[k], K_j[j * D + k], s);
            S_ij[j] = j0 + j < N ? s : -INFINITY;
            m_new = fmaxf(m_new, S_ij[j]);
        }
        const float alpha = __expf(m_i - m_new);
        l_i *= alpha;
        for (int k = 0; k < D; ++k) O_i[k] *= alpha;
        for (int j = 0; j < BC; ++j) {
            const float p = __expf(S_ij[j] - m_new);
            l_i += p;
#pragma unroll
            for (int k = 0; k < D; ++k) O_i[k] = fmaf(p, V_j[j * D + k], O_i[k]);
        }
        m_i = m_new;
        __syncthreads();
    }
    if (row < N)
        for (int k = 0; k < D; ++k)
            if (k < d) O[row * d + k] = O_i[k] / l_i;
}

template <int D>
static void launch(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    flash_attn_forward_kernel<D><<<(N + 31) / 32, 32>>>(Q, K, V, O, N, d);
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    switch ((d + 31) / 32) {
        case 1: launch<32>(d_Q, d_K, d_V, d_O, N, d); break;
        case 2: launch<64>(d_Q, d_K, d_V, d_O, N, d); break;
        case 3: flash_attn_forward_kernel<96, 32, 32><<<(N + 31) / 32, 32, 0, nullptr>>>(d_Q, d_K, d_V, d_O, N, d); break;
        case 4: launch<128>(d_Q, d_K, d_V, d_O, N, d); break;
        default: throw std::invalid_argument("head dimension above 128");
    }
    cudaDeviceSynchronize();
}
