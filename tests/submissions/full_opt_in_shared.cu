// expect: full; All four tiles in dynamic shared memory, 68 KB at d = 128, after opting in.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>

extern __shared__ float smem[];

__global__ void flash_attn_forward_kernel(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    const int B = 32;
    float *q = smem, *k = q + B * d, *v = k + B * (d + 1), *o = v + B * d, *s = o + B * d, *m = s + B * (B + 1), *l = m + B;
    const int tid = threadIdx.x, row0 = blockIdx.x * B;

    for (int x = tid; x < B * d; x += blockDim.x) {
        q[x] = row0 + x / d < N ? Q[row0 * d + x] : 0.f;
        o[x] = 0.f;
    }
    if (tid < B) m[tid] = -INFINITY, l[tid] = 0.f;

    for (int j0 = 0; j0 < N; j0 += B) {
        __syncthreads();
        for (int x = tid; x < B * d; x += blockDim.x) {
            const bool in = j0 + x / d < N;
            k[x / d * (d + 1) + x % d] = in ? K[j0 * d + x] : 0.f;
            v[x] = in ? V[j0 * d + x] : 0.f;
        }
        __syncthreads();
        for (int x = tid; x < B * B; x += blockDim.x) {
            const int i = x / B, j = x % B;
            float dot = 0.f;
            for (int c = 0; c < d; ++c) dot += q[i * d + c] * k[j * (d + 1) + c];
            s[i * (B + 1) + j] = j0 + j < N ? dot / sqrtf((float)d) : -INFINITY;
        }
        __syncthreads();
        if (tid < B) {  // one thread looks after the statistics of a row
            float* r = s + tid * (B + 1);
            float top = m[tid], sum = 0.f;
            for (int j = 0; j < B; ++j) top = fmaxf(top, r[j]);
            for (int j = 0; j < B; ++j) sum += r[j] = expf(r[j] - top);
            const float alpha = expf(m[tid] - top);
            m[tid] = top;
            l[tid] = l[tid] * alpha + sum;
            for (int c = 0; c < d; ++c) o[tid * d + c] *= alpha;
        }
        __syncthreads();
        for (int x = tid; x < B * d; x += blockDim.x) {
            float sum = 0.f;
            for (int j = 0; j < B; ++j) sum += s[x / d * (B + 1) + j] * v[j * d + x % d];
            o[x] += sum;
        }
    }
    __syncthreads();
    for (int x = tid; x < B * d; x += blockDim.x)
        if (row0 + x / d < N) O[row0 * d + x] = o[x] / l[x / d];
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    const int bytes = (4 * 32 * d + 32 + 32 * 33 + 64) * (int)sizeof(float);
    cudaError_t err = cudaFuncSetAttribute(flash_attn_forward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (err != cudaSuccess) fprintf(stderr, "no room: %s\n", cudaGetErrorString(err));
    flash_attn_forward_kernel<<<(N + 31) / 32, 128, bytes>>>(d_Q, d_K, d_V, d_O, N, d);
    cudaDeviceSynchronize();
}
