// Row sums with float4 loads and shuffles, through host code that copies; a warp per row.
__constant__ float factors[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ float weigh(const float* values, int count)
{
    float weights[4];
    for (int i = 0; i < 4; i++) weights[i] = factors[i]; // @weights
    float sum = 0.0f;
    for (int i = 0; i < count; i++) sum += values[i] * weights[i]; // @weigh
    return sum;
}
__global__ void rows(const float* Q, float* O, int N, int d)
{
    __shared__ float sums[4][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.x * 4 + warp;
    const int last = row < N ? row : N - 1;
    float sum = 0.0f;
    for (int c = lane * 4; c < d; c += 128) {
        const float4 four = *(const float4*)(Q + last * d + c); // @load
        const float values[4] = {four.x, four.y, four.z, four.w};
        sum += weigh(values, 4);
    }
    sums[warp][lane] = sum; // @put
    __syncwarp(); // @met
    const float beside = sums[warp][lane ^ 1]; // @beside
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step); // @shuffle
    if (row < N)
        for (int c = lane; c < d; c += 32) O[row * d + c] = sum + 0.0f * beside; // @store
}
void run(const float* Q, const float* K, const float* V, float* O, int N, int d)
{
    float host[4] = {4.0f, 3.0f, 2.0f, 1.0f};
    float* device = nullptr;
    cudaMalloc(&device, sizeof host);
    cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice); // @up
    cudaMemcpyToSymbol(factors, host, sizeof host);
    cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost); // @down
    rows<<<(N + 3) / 4, 128>>>(Q, O, N, d); // @launch
    cudaDeviceSynchronize();
    cudaFree(device); // @free
}
