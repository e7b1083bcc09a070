// A block's sum of squares, first in shared memory, then in one warp; the sums of blocks by an atomic.
#define THREADS 128
__device__ float total;
__device__ int finished;
__global__ void begin()
{
    total = 0.0f; // @zero
    finished = 0;
}
__global__ void squares(const float* Q, float* O, int n)
{
    __shared__ float part[THREADS];
    __shared__ float scale; // @declared
    const int t = threadIdx.x;
    if (t == 0) scale = 0.5f; // @scale
    float sum = 0.0f;
    for (int i = blockIdx.x * THREADS + t; i < n; i += gridDim.x * THREADS) sum += Q[i] * Q[i]; // @read
    part[t] = sum; // @put
    __syncthreads(); // @filled
    for (int step = THREADS / 2; step >= 32; step /= 2) {
        if (t < step) part[t] += part[t + step]; // @fold
        __syncthreads(); // @folded
    }
    if (t < 32) {
        for (int step = 16; step > 0; step /= 2) {
            const float other = part[t ^ step]; // @take
            __syncwarp(); // @taken
            part[t] += other; // @add
            __syncwarp(); // @added
        }
    }
    if (t == 0) {
        atomicAdd(&total, part[0] * scale); // @total
        __threadfence();
        if (atomicAdd(&finished, 1) == gridDim.x - 1) O[0] = atomicAdd(&total, 0.0f); // @last
    }
    __syncthreads(); // @summed
    for (int i = blockIdx.x * THREADS + t + 1; i < n; i += gridDim.x * THREADS) O[i] = part[t % 32]; // @spread
}
void run(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    begin<<<1, 1>>>();
    squares<<<4, THREADS>>>(Q, O, N * d); // @launch
    cudaDeviceSynchronize();
}
