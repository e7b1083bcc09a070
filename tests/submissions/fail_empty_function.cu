// expect: fail runs; score 0; says "without launching a kernel"; The function returns at once: no kernel, no output.
#include <cuda_runtime.h>
#include <stdio.h>
#include <math.h>

#define BR 32
#define BC 32
#define D_MAX 128

__global__ void flash_attn_forward_kernel(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    __shared__ float Kj[BC][D_MAX];
    __shared__ float Vj[BC][D_MAX];
    const int tid = threadIdx.x;
    const int row = blockIdx.x * BR + tid;
    const float scale = 1.0f / sqrtf((float)d);

    float q[D_MAX], acc[D_MAX];
    for (int k = 0; k < d; k++) {
        q[k] = row < N ? Q[row * d + k] : 0.0f;
        acc[k] = 0.0f;
    }
    float m_i = -INFINITY;
    float l_i = 0.0f;

    int num_tiles = (N + BC - 1) / BC;
    for (int t = 0; t < num_tiles; t++) {
        int key = t * BC + tid;
        for (int k = 0; k < d; k++) {
            Kj[tid][k] = key < N ? K[key * d + k] : 0.0f;
            Vj[tid][k] = key < N ? V[key * d + k] : 0.0f;
        }
        __syncthreads();

        float S[BC];
        float m_tile = -INFINITY;
        for (int j = 0; j < BC; j++) {
            float dot = 0.0f;
            for (int k = 0; k < d; k++) dot += q[k] * Kj[j][k];
            S[j] = t * BC + j < N ? dot * scale : -INFINITY;
            m_tile = fmaxf(m_tile, S[j]);
        }

        float m_new = fmaxf(m_i, m_tile);
        float alpha = expf(m_i - m_new);
        l_i *= alpha;
        for (int k = 0; k < d; k++) acc[k] *= alpha;
        for (int j = 0; j < BC; j++) {
            float p = expf(S[j] - m_new);
            l_i += p;
            for (int k = 0; k < d; k++) acc[k] += p * Vj[j][k];
        }
        m_i = m_new;
        __syncthreads();
    }

    if (row < N) {
        for (int k = 0; k < d; k++) O[row * d + k] = acc[k] / l_i;
    }
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    // TODO
    (void)d_Q; (void)d_K; (void)d_V; (void)d_O; (void)N; (void)d;
}
