// expect: full; One dynamic shared array carved into Q, K, V and S tiles of exactly d columns. BC = 16 to fit.
#include <cuda_runtime.h>
#include <math.h>

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

__global__
void flash_attn_forward_kernel(const float* Q, const float* K, const float* V, float* O,
                               const int N, const int d, const int Br, const int Bc)
{
    extern __shared__ float sram[];
    float* Qi = sram;               // Br x d
    float* Kj = Qi + Br * d;        // Bc x d
    float* Vj = Kj + Bc * d;        // Bc x d
    float* S  = Vj + Bc * d;        // Br x Bc
    float* Oi = S + Br * Bc;        // Br x d  (too big for registers, so it lives here)

    const int tx = threadIdx.x;     // one thread, one row
    const int row0 = blockIdx.x * Br;
    for (int x = tx; x < Br * d; x += Br) {
        Qi[x] = row0 * d + x < N * d ? Q[row0 * d + x] : 0.f;
        Oi[x] = 0.f;
    }
    float m = -INFINITY, l = 0;
    for (int j = 0; j < CEIL_DIV(N, Bc); j++) {
        for (int x = tx; x < Bc * d; x += Br) {
            const int g = j * Bc * d + x;
            Kj[x] = g < N * d ? K[g] : 0.f;
            Vj[x] = g < N * d ? V[g] : 0.f;
        }
        __syncthreads();
        float row_m = -INFINITY, row_l = 0;
        for (int y = 0; y < Bc; y++) {
            float sum = 0;
            for (int x = 0; x < d; x++) sum += Qi[tx * d + x] * Kj[y * d + x];
            sum *= rsqrtf((float)d);
            if (j * Bc + y >= N) sum = -INFINITY;
            S[tx * Bc + y] = sum;
            if (sum > row_m) row_m = sum;
        }
        const float m_new = max(m, row_m);
        for (int y = 0; y < Bc; y++) {
            S[tx * Bc + y] = expf(S[tx * Bc + y] - m_new);
            row_l += S[tx * Bc + y];
        }
        const float alpha = expf(m - m_new);
        l = alpha * l + row_l;
        for (int x = 0; x < d; x++) {
            float pv = 0;
            for (int y = 0; y < Bc; y++) pv += S[tx * Bc + y] * Vj[y * d + x];
            Oi[tx * d + x] = alpha * Oi[tx * d + x] + pv;
        }
        m = m_new;
        __syncthreads();
    }
    if (row0 + tx < N)
        for (int x = 0; x < d; x++) O[(row0 + tx) * d + x] = Oi[tx * d + x] / l;
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    const int Br = 16, Bc = 16;
    const size_t bytes = sizeof(float) * (2 * Br * d + 2 * Bc * d + Br * Bc);
    flash_attn_forward_kernel<<<CEIL_DIV(N, Br), Br, bytes>>>(d_Q, d_K, d_V, d_O, N, d, Br, Bc);
    cudaDeviceSynchronize();
}
