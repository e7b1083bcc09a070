// expect: fail runs; score 75..85; assert(d == 64) in the kernel: made for one head dimension.
#include <cuda_runtime.h>
#include <assert.h>
#include <math.h>

// online softmax, one key at a time; simple but no n x n matrix
__global__ void flash_attn_forward_kernel(const float* q, const float* k, const float* v, float* o, int n, int d)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(d == 64);
    if (i >= n) return;
    float acc[128];
    for (int c = 0; c < d; ++c) acc[c] = 0.f;
    float m = -INFINITY, l = 0.f;
    for (int j = 0; j < n; ++j) {
        float s = 0.f;
        for (int c = 0; c < d; ++c) s += q[i * d + c] * k[j * d + c];
        s /= sqrtf((float)d);
        float m_new = fmaxf(m, s);
        float corr = expf(m - m_new);
        float p = expf(s - m_new);
        l = l * corr + p;
        for (int c = 0; c < d; ++c) acc[c] = acc[c] * corr + p * v[j * d + c];
        m = m_new;
    }
    for (int c = 0; c < d; ++c) o[i * d + c] = acc[c] / l;
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    int threads = 128;
    flash_attn_forward_kernel<<<(N + threads - 1) / threads, threads>>>(d_Q, d_K, d_V, d_O, N, d);
    cudaDeviceSynchronize();
}
