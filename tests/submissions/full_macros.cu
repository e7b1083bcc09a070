// expect: full; Macros named N, d and FP, as in many course templates: nothing of the grader's may use these names.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define N 1024
#define d 64
#define FP float
#define BLOCK 32
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define IDX(r, c, ld) ((r) * (ld) + (c))
#define LAUNCH(kernel, n) kernel<<<((n) + BLOCK - 1) / BLOCK, BLOCK>>>

__global__ void flash_attn_forward_kernel(const FP *Q, const FP *K, const FP *V, FP *O, int n, int dim)
{
    __shared__ FP Kt[BLOCK][128];
    __shared__ FP Vt[BLOCK][128];
    int t = threadIdx.x, i = blockIdx.x * BLOCK + threadIdx.x, j, k, b;
    FP out[128], mx = -INFINITY, den = 0;
    for (k = 0; k < dim; k++) out[k] = 0;
    for (b = 0; b < n; b += BLOCK) {
        if (b + t < n)
            for (k = 0; k < dim; k++) {
                Kt[t][k] = K[IDX(b + t, k, dim)];
                Vt[t][k] = V[IDX(b + t, k, dim)];
            }
        __syncthreads();
        if (i < n)
            for (j = 0; j < MIN(BLOCK, n - b); j++) {
                FP s = 0, nm, a, p;
                for (k = 0; k < dim; k++) s += Q[IDX(i, k, dim)] * Kt[j][k];
                s /= sqrtf((FP)dim);
                nm = MAX(mx, s);
                a = expf(mx - nm);
                p = expf(s - nm);
                den = den * a + p;
                for (k = 0; k < dim; k++) out[k] = out[k] * a + p * Vt[j][k];
                mx = nm;
            }
        __syncthreads();
    }
    if (i < n)
        for (k = 0; k < dim; k++) O[IDX(i, k, dim)] = out[k] / den;
}

void flash_attn_forward_cuda(const FP *d_Q, const FP *d_K, const FP *d_V, FP *d_O, int n, int dim)
{
    LAUNCH(flash_attn_forward_kernel, n)(d_Q, d_K, d_V, d_O, n, dim);
    cudaDeviceSynchronize();
}

int main(void)
{
    FP *x;
    cudaMallocManaged(&x, 4 * N * d * sizeof(FP));
    for (int i = 0; i < 3 * N * d; i++) x[i] = (FP)rand() / RAND_MAX;
    flash_attn_forward_cuda(x, x + N * d, x + 2 * N * d, x + 3 * N * d, N, d);
    printf("O[0] = %f\n", x[3 * N * d]);
    cudaFree(x);
    return 0;
}
