// expect: full; 32 x 32 threads: one score each, then up to four columns of O each. K and V share an array.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>

constexpr int TILE = 32;
constexpr int D = 128;

__global__ void flash_attn_forward_kernel(const float* Q, const float* K, const float* V, float* O, int N, int d,
                                          float scale)
{
    __shared__ float sQ[TILE][D];
    __shared__ float sKV[TILE][D + 1];
    __shared__ float sS[TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int i = blockIdx.x * TILE + ty;

    for (int c = tx; c < d; c += TILE) sQ[ty][c] = i < N ? Q[i * d + c] : 0.f;
    float m_i = -INFINITY, l_i = 0.f, o[D / TILE] = {};

    const int tiles = (N + TILE - 1) / TILE;
    for (int t = 0; t < tiles; ++t) {
        const int key = t * TILE + ty;
        for (int c = tx; c < d; c += TILE) sKV[ty][c] = key < N ? K[key * d + c] : 0.f;
        __syncthreads();

        float dot = 0.f;
        for (int c = 0; c < d; ++c) dot += sQ[ty][c] * sKV[tx][c];
        sS[ty][tx] = t * TILE + tx < N ? dot * scale : -INFINITY;
        __syncthreads();

        for (int c = tx; c < d; c += TILE) sKV[ty][c] = key < N ? V[key * d + c] : 0.f;
        float m_new = m_i;
        for (int j = 0; j < TILE; ++j) m_new = fmaxf(m_new, sS[ty][j]);
        const float alpha = expf(m_i - m_new);
        __syncthreads();

        l_i *= alpha;
        for (float& x : o) x *= alpha;
        for (int j = 0; j < TILE; ++j) {
            const float p = expf(sS[ty][j] - m_new);
            l_i += p;
            for (int c = 0; c < D / TILE; ++c)
                if (tx + c * TILE < d) o[c] += p * sKV[j][tx + c * TILE];
        }
        m_i = m_new;
        __syncthreads();
    }
    if (i < N)
        for (int c = 0; c < D / TILE; ++c)
            if (tx + c * TILE < d) O[i * d + tx + c * TILE] = o[c] / l_i;
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    dim3 block(TILE, TILE), grid((N + TILE - 1) / TILE);
    flash_attn_forward_kernel<<<grid, block>>>(d_Q, d_K, d_V, d_O, N, d, 1.f / sqrtf((float)d));
    cudaError_t err = cudaDeviceSynchronize();
    if (err != cudaSuccess) printf("kernel failed: %s\n", cudaGetErrorString(err));
}
