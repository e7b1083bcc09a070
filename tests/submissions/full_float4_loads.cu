// expect: full; float4 loads where rows are a multiple of 4 long, plain loads where they are not.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>

constexpr int B = 32, DMAX = 128;

template <bool VECTOR>
__device__ void load(float (&tile)[B][DMAX], const float* src, int first, int N, int d)
{
    const int t = threadIdx.x;
    const bool in = first + t < N;
    const float* line = src + static_cast<int64_t>(first + t) * d;
    if constexpr (VECTOR) {
        for (int c = 0; c < d / 4; ++c) {
            const float4 x = in ? reinterpret_cast<const float4*>(line)[c] : make_float4(0.f, 0.f, 0.f, 0.f);
            *reinterpret_cast<float4*>(&tile[t][4 * c]) = x;
        }
    } else {
        for (int c = 0; c < d; ++c) tile[t][c] = in ? line[c] : 0.f;
    }
}

template <bool VECTOR>
__global__ void flash_attn_forward_kernel(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    __shared__ __align__(16) float Ks[B][DMAX], Vs[B][DMAX];
    const int row = blockIdx.x * B + threadIdx.x;
    float q[DMAX], o[DMAX];
    for (int c = 0; c < d; ++c) q[c] = row < N ? Q[row * d + c] : 0.f, o[c] = 0.f;
    float m = -INFINITY, l = 0.f;
    for (int first = 0; first < N; first += B) {
        load<VECTOR>(Ks, K, first, N, d);
        load<VECTOR>(Vs, V, first, N, d);
        __syncthreads();
        const int keys = min(B, N - first);
        float s[B], top = m;
        for (int j = 0; j < keys; ++j) {
            float sum = 0.f;
            for (int c = 0; c < d; ++c) sum += q[c] * Ks[j][c];
            s[j] = sum / sqrtf(static_cast<float>(d));
            top = fmaxf(top, s[j]);
        }
        const float alpha = expf(m - top);
        l *= alpha;
        for (int c = 0; c < d; ++c) o[c] *= alpha;
        for (int j = 0; j < keys; ++j) {
            const float p = expf(s[j] - top);
            l += p;
            for (int c = 0; c < d; ++c) o[c] += p * Vs[j][c];
        }
        m = top;
        __syncthreads();
    }
    if (row >= N) return;
    for (int c = 0; c < d; ++c) O[row * d + c] = o[c] / l;
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    const int blocks = (N + B - 1) / B;
    if (d % 4 == 0)
        flash_attn_forward_kernel<true><<<blocks, B>>>(d_Q, d_K, d_V, d_O, N, d);
    else
        flash_attn_forward_kernel<false><<<blocks, B>>>(d_Q, d_K, d_V, d_O, N, d);
    cudaDeviceSynchronize();
}
