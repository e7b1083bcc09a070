// expect: full; Its own benchmark main with events, device properties and error names; a CPU reference besides.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda.h>
#include <cuda_runtime.h>
#include "device_launch_parameters.h"

#define checkCudaErrors(val) check((val), #val, __FILE__, __LINE__)
template <typename T>
void check(T result, char const* const func, const char* const file, int const line)
{
    if (result) {
        fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\"\n", file, line, (int)result,
                cudaGetErrorName(result), func);
        exit(EXIT_FAILURE);
    }
}

void attention_forward_cpu(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    std::vector<float> p(N);
    for (int i = 0; i < N; i++) {
        float mx = -1e30f, sum = 0;
        for (int j = 0; j < N; j++) {
            p[j] = 0;
            for (int k = 0; k < d; k++) p[j] += Q[i * d + k] * K[j * d + k];
            p[j] /= sqrtf((float)d);
            mx = fmaxf(mx, p[j]);
        }
        for (int j = 0; j < N; j++) sum += p[j] = expf(p[j] - mx);
        for (int k = 0; k < d; k++) {
            O[i * d + k] = 0;
            for (int j = 0; j < N; j++) O[i * d + k] += p[j] / sum * V[j * d + k];
        }
    }
}

__global__ void flash_attn_forward_kernel(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    float o[128] = {0}, m = -INFINITY, l = 0;
    for (int j = 0; j < N; j++) {
        float s = 0;
        for (int k = 0; k < d; k++) s += Q[i * d + k] * __ldg(&K[j * d + k]);
        s *= rsqrtf(d);
        float mn = fmaxf(m, s), a = expf(m - mn), p = expf(s - mn);
        l = l * a + p;
        for (int k = 0; k < d; k++) o[k] = o[k] * a + p * __ldg(&V[j * d + k]);
        m = mn;
    }
    for (int k = 0; k < d; k++) O[i * d + k] = o[k] / l;
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    flash_attn_forward_kernel<<<(N + 63) / 64, 64>>>(d_Q, d_K, d_V, d_O, N, d);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaDeviceSynchronize());
}

int main(int argc, char* argv[])
{
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaErrorNoDevice || count == 0) { puts("no CUDA device"); return 0; }
    cudaDeviceProp prop;
    checkCudaErrors(cudaGetDeviceProperties(&prop, 0));
    printf("%s, %d SMs, compute capability %d.%d\n", prop.name, prop.multiProcessorCount, prop.major, prop.minor);
    const int N = argc > 1 ? atoi(argv[1]) : 128, d = 64;
    size_t bytes = sizeof(float) * N * d;
    float* h = (float*)malloc(4 * bytes);
    for (int i = 0; i < 3 * N * d; i++) h[i] = rand() / (float)RAND_MAX - 0.5f;
    float* dev;
    checkCudaErrors(cudaMalloc((void**)&dev, 4 * bytes));
    checkCudaErrors(cudaMemcpy(dev, h, 3 * bytes, cudaMemcpyHostToDevice));
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    cudaEventRecord(start);
    flash_attn_forward_cuda(dev, dev + N * d, dev + 2 * N * d, dev + 3 * N * d, N, d);
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop);
    std::vector<float> ref(N * d), out(N * d);
    checkCudaErrors(cudaMemcpy(out.data(), dev + 3 * N * d, bytes, cudaMemcpyDeviceToHost));
    attention_forward_cpu(h, h + N * d, h + 2 * N * d, ref.data(), N, d);
    float worst = 0;
    for (int i = 0; i < N * d; i++) worst = fmaxf(worst, fabsf(out[i] - ref[i]));
    printf("%.3f ms, max diff %g: %s\n", ms, worst, worst < 1e-4f ? "PASS" : "MISMATCH");
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    cudaFree(dev);
    free(h);
    return 0;
}
