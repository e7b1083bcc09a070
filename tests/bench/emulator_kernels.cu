// The three styles of attention that the emulator is measured with: see emulator_kernels.py.
#include <cuda_runtime.h>
#include <math.h>
// naive
__global__ void scores(const float* Q, const float* K, float* S, int N, int d, float scale) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= N || j >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < d; ++k) sum += Q[i * d + k] * K[j * d + k];
    S[i * N + j] = sum * scale;
}
__global__ void softmax(float* S, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    float m = -INFINITY, l = 0.0f;
    for (int j = 0; j < N; ++j) m = fmaxf(m, S[i * N + j]);
    for (int j = 0; j < N; ++j) { float e = __expf(S[i * N + j] - m); S[i * N + j] = e; l += e; }
    for (int j = 0; j < N; ++j) S[i * N + j] /= l;
}
__global__ void output(const float* S, const float* V, float* O, int N, int d) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= N || c >= d) return;
    float sum = 0.0f;
    for (int j = 0; j < N; ++j) sum += S[i * N + j] * V[j * d + c];
    O[i * d + c] = sum;
}
void naive(const float* Q, const float* K, const float* V, float* O, int N, int d) {
    float* S; cudaMalloc(&S, (size_t)N * N * sizeof(float));
    dim3 b(16, 16);
    scores<<<dim3((N + 15) / 16, (N + 15) / 16), b>>>(Q, K, S, N, d, 1.0f / sqrtf((float)d));
    softmax<<<(N + 127) / 128, 128>>>(S, N);
    output<<<dim3((d + 15) / 16, (N + 15) / 16), b>>>(S, V, O, N, d);
    cudaDeviceSynchronize();
    cudaFree(S);
}
// flash: a thread per row
template <int D>
__global__ void flash(const float* Q, const float* K, const float* V, float* O, int N, float scale) {
    const int Br = 32, Bc = 32;
    __shared__ float Ks[Bc][D];
    __shared__ float Vs[Bc][D];
    const int row = blockIdx.x * Br + threadIdx.x;
    float q[D], acc[D], s[Bc];
    for (int k = 0; k < D; ++k) { q[k] = row < N ? Q[row * D + k] : 0.0f; acc[k] = 0.0f; }
    float m = -INFINITY, l = 0.0f;
    for (int start = 0; start < N; start += Bc) {
        for (int k = threadIdx.x; k < Bc * D; k += blockDim.x) {
            int r = start + k / D;
            Ks[k / D][k % D] = r < N ? K[r * D + k % D] : 0.0f;
            Vs[k / D][k % D] = r < N ? V[r * D + k % D] : 0.0f;
        }
        __syncthreads();
        float tile_max = m;
        for (int j = 0; j < Bc; ++j) {
            float sum = 0.0f;
            for (int k = 0; k < D; ++k) sum += q[k] * Ks[j][k];
            s[j] = start + j < N ? sum * scale : -INFINITY;
            tile_max = fmaxf(tile_max, s[j]);
        }
        float alpha = __expf(m - tile_max);
        l *= alpha;
        for (int k = 0; k < D; ++k) acc[k] *= alpha;
        for (int j = 0; j < Bc; ++j) {
            float p = __expf(s[j] - tile_max);
            l += p;
            for (int k = 0; k < D; ++k) acc[k] += p * Vs[j][k];
        }
        m = tile_max;
        __syncthreads();
    }
    if (row < N) for (int k = 0; k < D; ++k) O[row * D + k] = acc[k] / l;
}
void flash_rows(const float* Q, const float* K, const float* V, float* O, int N, int d) {
    float scale = 1.0f / sqrtf((float)d);
    if (d == 64) flash<64><<<(N + 31) / 32, 32>>>(Q, K, V, O, N, scale);
    else flash<128><<<(N + 31) / 32, 32>>>(Q, K, V, O, N, scale);
    cudaDeviceSynchronize();
}
// a warp per row
__global__ void warp(const float* Q, const float* K, const float* V, float* O, int N, int d, float scale) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N) return;
    float q[4], acc[4] = {0, 0, 0, 0};
    for (int k = 0; k < 4; ++k) q[k] = lane + 32 * k < d ? Q[row * d + lane + 32 * k] : 0.0f;
    float m = -INFINITY, l = 0.0f;
    for (int j = 0; j < N; ++j) {
        float s = 0.0f;
        for (int k = 0; k < 4; ++k) if (lane + 32 * k < d) s += q[k] * K[j * d + lane + 32 * k];
        for (int offset = 16; offset > 0; offset >>= 1) s += __shfl_xor_sync(0xffffffff, s, offset);
        s *= scale;
        float bigger = fmaxf(m, s), alpha = __expf(m - bigger), p = __expf(s - bigger);
        l = l * alpha + p;
        for (int k = 0; k < 4; ++k) if (lane + 32 * k < d) acc[k] = acc[k] * alpha + p * V[j * d + lane + 32 * k];
        m = bigger;
    }
    for (int k = 0; k < 4; ++k) if (lane + 32 * k < d) O[row * d + lane + 32 * k] = acc[k] / l;
}
void warp_rows(const float* Q, const float* K, const float* V, float* O, int N, int d) {
    warp<<<(N + 3) / 4, 128>>>(Q, K, V, O, N, d, 1.0f / sqrtf((float)d));
    cudaDeviceSynchronize();
}
