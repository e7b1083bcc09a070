// expect: full; The graded function is a template on the element type, and so is the kernel; templates deduce.
#include <cuda_runtime.h>
#include <cmath>

template <typename scalar_t>
struct Tile {
    scalar_t k[16][128];
    scalar_t v[16][128];
};

template <class scalar_t>
__global__ void flash_attn_forward_kernel(const scalar_t* Q, const scalar_t* K, const scalar_t* V, scalar_t* O,
                                          int N, int d, scalar_t scale)
{
    __shared__ Tile<scalar_t> tile;
    const int lanes = blockDim.x, x = threadIdx.x, y = threadIdx.y;  // 8 threads share each of 16 rows
    const int row = blockIdx.x * blockDim.y + y;
    __shared__ scalar_t part[16][8 + 1];
    scalar_t o[16] = {};
    scalar_t m = -INFINITY, l = 0;

    for (int first = 0; first < N; first += 16) {
        const bool exists = first + y < N;
        for (int c = x; c < d; c += lanes) {
            tile.k[y][c] = exists ? K[(first + y) * d + c] : scalar_t(0);
            tile.v[y][c] = exists ? V[(first + y) * d + c] : scalar_t(0);
        }
        __syncthreads();
        for (int j = 0; j < min(16, N - first); ++j) {
            scalar_t sum = 0;
            for (int c = x; c < d; c += lanes) sum += (row < N ? Q[row * d + c] : scalar_t(0)) * tile.k[j][c];
            part[y][x] = sum;
            __syncthreads();  // the row's score needs the parts of all eight threads
            scalar_t s = 0;
            for (int t = 0; t < lanes; ++t) s += part[y][t];
            __syncthreads();  // the next key overwrites the parts
            s *= scale;
            const scalar_t m_new = max(m, s);
            const scalar_t alpha = exp(m - m_new), p = exp(s - m_new);
            l = l * alpha + p;
            for (int c = x, n = 0; c < d; c += lanes, ++n) o[n] = o[n] * alpha + p * tile.v[j][c];
            m = m_new;
        }
        __syncthreads();
    }
    if (row < N)
        for (int c = x, n = 0; c < d; c += lanes, ++n) O[row * d + c] = o[n] / l;
}

template <typename T>
void flash_attn_forward_cuda(const T* d_Q, const T* d_K, const T* d_V, T* d_O, int N, int d)
{
    flash_attn_forward_kernel<<<(N + 15) / 16, dim3(8, 16)>>>(d_Q, d_K, d_V, d_O, N, d, T(1) / std::sqrt(T(d)));
    cudaDeviceSynchronize();
}
