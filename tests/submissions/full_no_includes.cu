// expect: full; Includes nothing: nvcc includes cuda_runtime.h by itself. Masks the tail with the bits of -inf.
__global__ void flash_attn_forward_kernel(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    const float minus_inf = __int_as_float(0xff800000);
    __shared__ float s_k[32][129], s_v[32][129];
    __shared__ float s_p[8][32];  // the weights of one row for each of the 8 warps
    int lane = threadIdx.x, warp = threadIdx.y;
    int row = blockIdx.x * 8 + warp;
    float o0 = 0, o1 = 0, o2 = 0, o3 = 0, m = minus_inf, l = 0;

    for (int base = 0; base < N; base += 32) {
        for (int r = warp; r < 32; r += 8)
            for (int c = lane; c < 128; c += 32) {
                bool ok = base + r < N && c < d;
                s_k[r][c] = ok ? K[(base + r) * d + c] : 0.0f;
                s_v[r][c] = ok ? V[(base + r) * d + c] : 0.0f;
            }
        __syncthreads();
        float s = minus_inf;
        if (row < N && base + lane < N) {
            s = 0;
            for (int c = 0; c < d; c++) s += Q[row * d + c] * s_k[lane][c];
            s *= rsqrtf((float)d);
        }
        float top = s;
        for (int w = 16; w; w /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, w));
        top = row < N ? fmaxf(top, m) : 0.0f;  // a row that does not exist has no maximum
        float p = expf(s - top), sum = p, alpha = expf(m - top);
        for (int w = 16; w; w /= 2) sum += __shfl_xor_sync(0xffffffff, sum, w);
        s_p[warp][lane] = p;
        __syncwarp();
        o0 *= alpha; o1 *= alpha; o2 *= alpha; o3 *= alpha;
        for (int j = 0; j < 32; j++) {
            float pj = s_p[warp][j];
            o0 += pj * s_v[j][lane];
            o1 += pj * s_v[j][lane + 32];
            o2 += pj * s_v[j][lane + 64];
            o3 += pj * s_v[j][lane + 96];
        }
        l = l * alpha + sum;
        m = top;
        __syncthreads();
    }
    if (row >= N) return;
    float* out = O + row * d;
    if (lane < d) out[lane] = o0 / l;
    if (lane + 32 < d) out[lane + 32] = o1 / l;
    if (lane + 64 < d) out[lane + 64] = o2 / l;
    if (lane + 96 < d) out[lane + 96] = o3 / l;
}

void flash_attn_forward_cuda(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int N, int d)
{
    flash_attn_forward_kernel<<<(N + 7) / 8, dim3(32, 8)>>>(d_Q, d_K, d_V, d_O, N, d);
    cudaDeviceSynchronize();
}
