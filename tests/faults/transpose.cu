// Transposes by tiles of dynamic shared memory, through a buffer from cudaMalloc.
#define TILE 16
__global__ void copy_in(const float* Q, float* work, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) work[i] = Q[i]; // @copy
}
__global__ void transpose(const float* work, float* O, int N, int d)
{
    extern __shared__ float tile[];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    tile[y * (TILE + 1) + x] = row < N && column < d ? work[row * d + column] : 0.0f; // @fill
    __syncthreads(); // @filled
    const int to_row = blockIdx.x * TILE + y, to_column = blockIdx.y * TILE + x;
    if (to_row < d && to_column < N)
        O[to_row * N + to_column] = tile[x * (TILE + 1) + y]; // @store
}
void run(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    const int n = N * d;
    float* work = nullptr;
    cudaMalloc(&work, n * sizeof(float));
    copy_in<<<(n + 255) / 256, 256>>>(Q, work, n); // @first
    const dim3 block(TILE, TILE), grid((d + TILE - 1) / TILE, (N + TILE - 1) / TILE);
    transpose<<<grid, block, TILE * (TILE + 1) * sizeof(float)>>>(work, O, N, d); // @second
    cudaDeviceSynchronize();
    cudaFree(work); // @free
}
