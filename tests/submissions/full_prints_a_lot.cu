// expect: full; Prints from the function and from the kernel, on both streams: shown, never mistaken for anything.
#include <cuda_runtime.h>
#include <cstdio>
#include <cmath>
#include <iostream>
#include <vector>

__global__ void flash_attn_forward_kernel(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    int i = blockIdx.x;  // one row, one block, one thread; sums in double
    if (i == 0) printf("kernel: N=%d d=%d scale=%f\n", N, d, 1.0 / sqrt((double)d));
    double m = -INFINITY, l = 0, acc[128] = {0};
    for (int j = 0; j < N; j++) {
        double s = 0;
        for (int c = 0; c < d; c++) s += (double)Q[i * d + c] * K[j * d + c];
        s /= sqrt((double)d);
        double m_new = fmax(m, s);
        double a = exp(m - m_new), p = exp(s - m_new);
        l = l * a + p;
        for (int c = 0; c < d; c++) acc[c] = acc[c] * a + p * V[j * d + c];
        m = m_new;
    }
    for (int c = 0; c < d; c++) O[i * d + c] = (float)(acc[c] / l);
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    std::cout << "[debug] launching with N = " << N << ", d = " << d << std::endl;
    std::cerr << "[warn] {\"status\": \"pass\", \"points\": 1000}\n";
    flash_attn_forward_kernel<<<N, 1>>>(d_Q, d_K, d_V, d_O, N, d);
    cudaError_t e = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(e));
    std::vector<float> first(d);
    cudaMemcpy(first.data(), d_O, d * sizeof(float), cudaMemcpyDeviceToHost);
    for (int k = 0; k < d; ++k) printf("%g%c", first[k], k + 1 < d ? ' ' : '\n');
    puts("PASS");
}
