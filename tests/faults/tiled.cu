// Flash attention with a thread per row: two warps share the tiles of K and V.
#define BR 64
#define BC 32
#define D 32
__global__ void attention(const float* Q, const float* K, const float* V, float* O, int N)
{
    __shared__ float Kj[BC][D + 1];
    __shared__ float Vj[BC][D + 1];
    const int tid = threadIdx.x;
    const int row = blockIdx.x * BR + tid;
    float q[D], acc[D];
    for (int c = 0; c < D; c++) {
        q[c] = row < N ? Q[row * D + c] : 0.0f; // @load_q
        acc[c] = 0.0f; // @clear
    }
    float m = -INFINITY, l = 0.0f;
    for (int j0 = 0; j0 < N; j0 += BC) {
        for (int i = tid; i < BC * D; i += BR) {
            const int r = i / D, c = i % D;
            Kj[r][c] = j0 + r < N ? K[(j0 + r) * D + c] : 0.0f; // @load_k
            Vj[r][c] = j0 + r < N ? V[(j0 + r) * D + c] : 0.0f; // @load_v
        }
        __syncthreads(); // @loaded
        float s[BC];
        float top = m;
        for (int j = 0; j < BC; j++) {
            float dot = 0.0f;
            for (int c = 0; c < D; c++) dot += q[c] * Kj[j][c]; // @dot
            s[j] = j0 + j < N ? dot : -INFINITY; // @score
            top = fmaxf(top, s[j]);
        }
        const float fade = expf(m - top);
        l *= fade;
        for (int c = 0; c < D; c++) acc[c] *= fade;
        for (int j = 0; j < BC; j++) {
            const float p = expf(s[j] - top);
            l += p;
            for (int c = 0; c < D; c++) acc[c] += p * Vj[j][c]; // @weigh
        }
        m = top;
        __syncthreads(); // @used
    }
    if (row < N)
        for (int c = 0; c < D; c++) O[row * D + c] = acc[c] / l; // @store
}
void run(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    attention<<<(N + BR - 1) / BR, BR>>>(Q, K, V, O, N); // @launch
    cudaDeviceSynchronize();
}
