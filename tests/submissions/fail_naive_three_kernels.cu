// expect: fail workspace; score 97; Right, but keeps all N x N scores in device memory: what FlashAttention avoids.
#include <cuda_runtime.h>
#include <cmath>

__global__ void scores_kernel(const float* Q, const float* K, float* S, int N, int d)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= N || j >= N) return;
    float dot = 0.0f;
    for (int k = 0; k < d; ++k) dot += Q[i * d + k] * K[j * d + k];
    S[(size_t)i * N + j] = dot / sqrtf((float)d);
}

__global__ void softmax_kernel(float* S, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    float* row = S + (size_t)i * N;
    float top = row[0], sum = 0.0f;
    for (int j = 1; j < N; ++j) top = fmaxf(top, row[j]);
    for (int j = 0; j < N; ++j) sum += row[j] = expf(row[j] - top);
    for (int j = 0; j < N; ++j) row[j] /= sum;
}

__global__ void output_kernel(const float* P, const float* V, float* O, int N, int d)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= N || k >= d) return;
    float sum = 0.0f;
    for (int j = 0; j < N; ++j) sum += P[(size_t)i * N + j] * V[j * d + k];
    O[i * d + k] = sum;
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    float* S = nullptr;
    cudaMalloc(&S, (size_t)N * N * sizeof(float));
    dim3 block(16, 16);
    scores_kernel<<<dim3((N + 15) / 16, (N + 15) / 16), block>>>(d_Q, d_K, S, N, d);
    softmax_kernel<<<(N + 63) / 64, 64>>>(S, N);
    output_kernel<<<dim3((d + 15) / 16, (N + 15) / 16), block>>>(S, d_V, d_O, N, d);
    cudaDeviceSynchronize();
    cudaFree(S);
}
