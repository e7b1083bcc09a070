// expect: full; Small device functions, a struct for the state of a row, and a CUDA_CHECK that exits.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(x)                                                                      \
    do {                                                                                   \
        cudaError_t e = (x);                                                               \
        if (e != cudaSuccess) {                                                            \
            fprintf(stderr, "CUDA error %s at line %d\n", cudaGetErrorString(e), __LINE__); \
            exit(EXIT_FAILURE);                                                            \
        }                                                                                  \
    } while (0)

struct RowState {
    float m = -INFINITY;
    float l = 0.0f;
    float o[128];

    __device__ explicit RowState(int d)
    {
        for (int k = 0; k < d; k++) o[k] = 0.0f;
    }

    __device__ void absorb(float score, const float* value, int d)
    {
        if (score > m) {  // a new maximum: shrink the past
            const float shrink = expf(m - score);
            l *= shrink;
            for (int k = 0; k < d; k++) o[k] *= shrink;
            m = score;
        }
        const float p = expf(score - m);
        l += p;
        for (int k = 0; k < d; k++) o[k] += p * value[k];
    }
};

__device__ float dot(const float* a, const float* b, int d)
{
    float sum = 0.0f;
    for (int k = 0; k < d; k++) sum += a[k] * b[k];
    return sum;
}

__device__ void fill_tile(float* tile, const float* matrix, int first, int rows, int d)
{
    for (int x = threadIdx.x; x < rows * d; x += blockDim.x) tile[x] = matrix[first * d + x];
}

__global__ void flash_attn_forward_kernel(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    __shared__ float k_tile[32 * 128];
    __shared__ float v_tile[32 * 128];
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int clamped = row < N ? row : N - 1;  // spare threads repeat the last row, and do not store it
    RowState state(d);
    for (int first = 0; first < N; first += 32) {
        int rows = min(32, N - first);
        fill_tile(k_tile, K, first, rows, d);
        fill_tile(v_tile, V, first, rows, d);
        __syncthreads();
        for (int j = 0; j < rows; j++)
            state.absorb(dot(&Q[clamped * d], &k_tile[j * d], d) / sqrtf((float)d), &v_tile[j * d], d);
        __syncthreads();
    }
    if (row < N)
        for (int k = 0; k < d; k++) O[row * d + k] = state.o[k] / state.l;
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    const int threads = 64;
    flash_attn_forward_kernel<<<(N + threads - 1) / threads, threads>>>(d_Q, d_K, d_V, d_O, N, d);
    CUDA_CHECK(cudaPeekAtLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
}
