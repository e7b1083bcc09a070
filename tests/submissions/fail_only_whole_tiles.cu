// expect: fail runs; score 35..50; says "without launching a kernel"; Refuses N that is not a multiple of 32, and says so where nobody reads it.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

const int T = 32;

#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
        exit(code);
    }
}

__global__ void flash_attn_forward_kernel(const float *Q, const float *K, const float *V, float *O,
                                          const int N, const int d)
{
    __shared__ float tileQ[T][128];
    __shared__ float tileKV[T][128 + 1];   // first K, then V
    __shared__ float S[T][T];
    __shared__ float rowMax[T], rowSum[T], factor[T];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int i = blockIdx.x * T + ty;

    for (int c = tx; c < d; c += T)
        tileQ[ty][c] = (i < N) ? Q[i * d + c] : 0.0f;
    if (tx == 0) { rowMax[ty] = -INFINITY; rowSum[ty] = 0.0f; }
    float out[4] = {0.0f, 0.0f, 0.0f, 0.0f};

    for (int j0 = 0; j0 < N; j0 += T) {
        for (int c = tx; c < d; c += T)
            tileKV[ty][c] = (j0 + ty < N) ? K[(j0 + ty) * d + c] : 0.0f;
        __syncthreads();   // K is here

        float s = 0.0f;
        for (int c = 0; c < d; c++)
            s += tileQ[ty][c] * tileKV[tx][c];
        S[ty][tx] = (j0 + tx < N) ? s / sqrtf((float)d) : -INFINITY;
        __syncthreads();   // S is complete, K may go

        for (int c = tx; c < d; c += T)
            tileKV[ty][c] = (j0 + ty < N) ? V[(j0 + ty) * d + c] : 0.0f;
        if (tx == 0) {
            float mx = rowMax[ty], sum = 0.0f;
            for (int j = 0; j < T; j++) mx = fmaxf(mx, S[ty][j]);
            for (int j = 0; j < T; j++) { S[ty][j] = expf(S[ty][j] - mx); sum += S[ty][j]; }
            factor[ty] = expf(rowMax[ty] - mx);
            rowSum[ty] = rowSum[ty] * factor[ty] + sum;
            rowMax[ty] = mx;
        }
        __syncthreads();   // V and the weights are here

        for (int n = 0; n < 4; n++) {
            const int c = tx + n * T;
            if (c < d) {
                out[n] *= factor[ty];
                for (int j = 0; j < T; j++) out[n] += S[ty][j] * tileKV[j][c];
            }
        }
        __syncthreads();   // V may go
    }

    for (int n = 0; n < 4; n++) {
        const int c = tx + n * T;
        if (i < N && c < d) O[i * d + c] = out[n] / rowSum[ty];
    }
}

void flash_attn_forward_cuda(const float *d_Q, const float *d_K, const float *d_V, float *d_O, int N, int d)
{
    if (N % T != 0) {
        printf("N must be a multiple of %d\n", T);
        return;
    }
    dim3 threads(T, T);
    dim3 blocks((N + T - 1) / T);
    flash_attn_forward_kernel<<<blocks, threads>>>(d_Q, d_K, d_V, d_O, N, d);
    gpuErrchk(cudaGetLastError());
    gpuErrchk(cudaDeviceSynchronize());
}
