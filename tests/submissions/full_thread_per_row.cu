// expect: full; A thread per row, K and V tiles in shared memory: what most students write first.
#include <cuda_runtime.h>
#include <math.h>

#define BR 32
#define BC 32
#define MAX_D 128

__global__ void flash_attn_forward_kernel(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    __shared__ float Ks[BC][MAX_D];
    __shared__ float Vs[BC][MAX_D];
    int tid = threadIdx.x;
    int row = blockIdx.x * BR + tid;
    float scale = 1.0f / sqrtf((float)d);

    float q[MAX_D], acc[MAX_D];
    for (int k = 0; k < d; k++) {
        q[k] = row < N ? Q[row * d + k] : 0.0f;
        acc[k] = 0.0f;
    }
    float m = -INFINITY, l = 0.0f;

    for (int start = 0; start < N; start += BC) {
        for (int k = 0; k < d; k++) {
            Ks[tid][k] = start + tid < N ? K[(start + tid) * d + k] : 0.0f;
            Vs[tid][k] = start + tid < N ? V[(start + tid) * d + k] : 0.0f;
        }
        __syncthreads();
        int keys = N - start < BC ? N - start : BC;
        for (int j = 0; j < keys; j++) {
            float s = 0.0f;
            for (int k = 0; k < d; k++) s += q[k] * Ks[j][k];
            s *= scale;
            float m_new = fmaxf(m, s);
            float alpha = expf(m - m_new);
            float p = expf(s - m_new);
            l = l * alpha + p;
            for (int k = 0; k < d; k++) acc[k] = acc[k] * alpha + p * Vs[j][k];
            m = m_new;
        }
        __syncthreads();
    }
    if (row < N)
        for (int k = 0; k < d; k++) O[row * d + k] = acc[k] / l;
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    flash_attn_forward_kernel<<<(N + BR - 1) / BR, BR>>>(d_Q, d_K, d_V, d_O, N, d);
    cudaDeviceSynchronize();
}
