// FlashAttention, forward pass, one head, float32.
//
//     O = softmax(Q K^T / sqrt(d)) V          Q, K, V, O: (N, d), row-major
//
// The N x N scores never exist as a whole. A block owns BR rows of Q and walks over K and V in tiles of BC
// keys; for each of its rows it carries three things from tile to tile, named as in the paper:
//
//     m_i   the largest score so far
//     l_i   the sum of exp(score - m_i) so far
//     O_i   the sum of exp(score - m_i) * value so far; divided by l_i once, at the very end
//
//     nvcc -O3 -std=c++17 flash_attention.cu -o flash_attention && ./flash_attention [N [d]]

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <cuda_runtime.h>

constexpr int BR = 32;      // rows of Q in a block's tile
constexpr int BC = 32;      // keys in a tile of K and V
constexpr int D_MAX = 128;  // the largest head dimension d
constexpr int LANES = 16;   // threads that share a row
constexpr int THREADS = LANES * BR;
constexpr int KEYS = BC / LANES;        // scores that a thread computes in each tile
constexpr int COLUMNS = D_MAX / LANES;  // columns of O that a thread accumulates, at most

// One column more than needed: without it, the threads of a warp would read the same column of different
// rows from one shared-memory bank, one after the other.
constexpr int STRIDE = D_MAX + 1;

#define CUDA_CHECK(call)                                                                        \
    do {                                                                                        \
        cudaError_t error = (call);                                                             \
        if (error != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (0)

// What the kernel has to reproduce, as plainly as possible. It stores a row of scores; the kernel must not.
void attention_forward_cpu(const float* Q,  // (N, d)
                           const float* K,  // (N, d)
                           const float* V,  // (N, d)
                           float* O,        // (N, d)
                           int N, int d)
{
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    std::vector<float> S(N);  // one row of the scores
    for (int i = 0; i < N; ++i) {
        float m = -INFINITY;
        for (int j = 0; j < N; ++j) {
            float dot = 0.0f;
            for (int k = 0; k < d; ++k) dot += Q[i * d + k] * K[j * d + k];
            S[j] = dot * scale;
            m = std::fmax(m, S[j]);
        }
        float l = 0.0f;
        for (int j = 0; j < N; ++j) {
            S[j] = std::exp(S[j] - m);  // at most 1: exp cannot overflow
            l += S[j];
        }
        for (int k = 0; k < d; ++k) {
            float sum = 0.0f;
            for (int j = 0; j < N; ++j) sum += S[j] * V[j * d + k];
            O[i * d + k] = sum / l;
        }
    }
}

// Copy 32 rows of a matrix into shared memory, all threads of the block together. A warp takes a row at a
// time, and its 32 threads neighbouring columns, so that global memory is read in whole lines.
__device__ void load_tile(float tile[][STRIDE],  // (32, d) in shared memory
                          const float* source,   // (N, d) in global memory
                          int first_row, int N, int d)
{
    const int thread = threadIdx.y * LANES + threadIdx.x;
    for (int r = thread / 32; r < 32; r += THREADS / 32) {
        for (int k = thread % 32; k < d; k += 32) {
            // TODO(1): copy element k of row first_row + r into tile[r][k] (about 2 lines)
            // Rows past N do not exist: never read them, and put 0 in their place.
        }
    }
}

// A block is LANES x BR threads. Thread (x, y) works on row y of the block's tile: it computes the scores of
// keys x, x + LANES ... of each tile, and columns x, x + LANES, x + 2 * LANES ... of the row of O.
__global__ void flash_attn_forward_kernel(const float* Q,  // (N, d)
                                          const float* K,  // (N, d)
                                          const float* V,  // (N, d)
                                          float* O,        // (N, d)
                                          int N, int d, float scale)
{
    // 40 KB of the 48 KB that a block may have: K_j and V_j take turns in one array.
    __shared__ float Q_i[BR][STRIDE];       // (BR, d)
    __shared__ float KV_j[BC][STRIDE];      // (BC, d): K_j, and later V_j
    __shared__ float P_ij[BR][BC + LANES];  // (BR, BC), and a pad against bank conflicts
    __shared__ float m_ij[BR][LANES];       // the largest score of each thread's keys

    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int row = blockIdx.x * BR + y;  // may be past N in the last block: such a thread still has to load
                                          // its share of every tile and to reach every barrier

    float m_i = -INFINITY;
    float l_i = 0.0f;
    float O_i[COLUMNS];
    for (int t = 0; t < COLUMNS; ++t) O_i[t] = 0.0f;

    load_tile(Q_i, Q, blockIdx.x * BR, N, d);

    for (int first_key = 0; first_key < N; first_key += BC) {
        // Why: nobody may overwrite V_j and P_ij while others still accumulate the previous tile.
        __syncthreads();
        load_tile(KV_j, K, first_key, N, d);
        // Why: a row of Q_i and of K_j was loaded by other threads than those that read it now.
        __syncthreads();

        float S_ij[KEYS];  // scores of this row with keys x, x + LANES ...
        for (int j = 0; j < KEYS; ++j) S_ij[j] = 0.0f;
        // TODO(2): compute this thread's dot products (about 5 lines)
        // S_ij[j] is the dot product of row y of Q_i and row x + j * LANES of KV_j.

        // TODO(3): scale the scores, mask keys past N, and tell the row the largest (about 6 lines)
        // A key past N gets the score -INFINITY. Put the largest of this thread's scores into m_ij[y][x].

        // Why: the row's maximum needs all of m_ij[y], and V_j will overwrite K_j.
        __syncthreads();
        load_tile(KV_j, V, first_key, N, d);

        // TODO(4): update the running maximum, and rescale l_i and O_i to it (about 6 lines)
        // The first tile needs no special case: m_i is -INFINITY then, and exp(-INFINITY) is 0.

        // TODO(5): store the weights exp(S_ij[j] - m_i) of this thread's keys in P_ij[y] (about 1 line)

        // Why: V_j and the row's weights were written by other threads than those that read them now.
        __syncthreads();

        // TODO(6): add the weights of the tile to l_i, and weights times values to O_i (about 7 lines)
        // The row needs all BC weights of P_ij[y]. Element t of O_i is column x + t * LANES, where that is < d.
    }

    // TODO(7): divide by l_i, once, and store this thread's columns of the row (about 3 lines)
    // Only rows below N and columns below d exist.
}

// The function that is graded. The pointers are device pointers.
void flash_attn_forward_cuda(const float* d_Q,  // (N, d)
                             const float* d_K,  // (N, d)
                             const float* d_V,  // (N, d)
                             float* d_O,        // (N, d)
                             int N, int d)
{
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    // TODO(8): launch the kernel (about 3 lines)
    // A block has LANES x BR threads; there is one for each BR rows, and the last may be only partly filled.
    (void)scale;
    CUDA_CHECK(cudaGetLastError());       // was the launch accepted?
    CUDA_CHECK(cudaDeviceSynchronize());  // did the kernel run to its end?
}

static void print_row(const char* name, const float* row, int d)
{
    std::printf("%s first row:", name);
    for (int k = 0; k < d && k < 8; ++k) std::printf(" %9.6f", row[k]);
    std::printf(d > 8 ? " ...\n" : "\n");
}

int main(int argc, char** argv)
{
    const int N = argc > 1 ? std::atoi(argv[1]) : 113;  // not a multiple of 32, on purpose
    const int d = argc > 2 ? std::atoi(argv[2]) : 64;
    if (N < 1 || d < 1 || d > D_MAX) {
        std::fprintf(stderr, "usage: %s [N [d]], with N >= 1 and 1 <= d <= %d\n", argv[0], D_MAX);
        return 2;
    }
    const size_t count = static_cast<size_t>(N) * d;
    const size_t bytes = count * sizeof(float);

    std::mt19937 random(0);
    std::normal_distribution<float> normal;
    std::vector<float> Q(count), K(count), V(count), expected(count), O(count);
    for (std::vector<float>* array : {&Q, &K, &V})
        for (float& value : *array) value = normal(random);
    attention_forward_cpu(Q.data(), K.data(), V.data(), expected.data(), N, d);

    float *d_Q, *d_K, *d_V, *d_O;  // (N, d) each
    CUDA_CHECK(cudaMalloc(&d_Q, bytes));
    CUDA_CHECK(cudaMalloc(&d_K, bytes));
    CUDA_CHECK(cudaMalloc(&d_V, bytes));
    CUDA_CHECK(cudaMalloc(&d_O, bytes));
    CUDA_CHECK(cudaMemcpy(d_Q, Q.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_K, K.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_V, V.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(d_O, 0xFF, bytes));  // NaN, so that an element that is not written shows

    flash_attn_forward_cuda(d_Q, d_K, d_V, d_O, N, d);
    CUDA_CHECK(cudaMemcpy(O.data(), d_O, bytes, cudaMemcpyDeviceToHost));

    float difference = 0.0f;
    bool finite = true;
    for (size_t i = 0; i < count; ++i) {
        finite = finite && std::isfinite(O[i]);
        difference = std::fmax(difference, std::fabs(O[i] - expected[i]));
    }
    std::printf("shape of O: (%d, %d)\n", N, d);
    print_row("CPU", expected.data(), d);
    print_row("GPU", O.data(), d);
    std::printf("largest absolute difference: %g%s\n", difference, finite ? "" : " (and NaN or infinity)");
    const bool passed = finite && difference < 1e-4f;
    std::printf("%s\n", passed ? "PASS" : "MISMATCH");

    CUDA_CHECK(cudaFree(d_Q));
    CUDA_CHECK(cudaFree(d_K));
    CUDA_CHECK(cudaFree(d_V));
    CUDA_CHECK(cudaFree(d_O));
    return passed ? 0 : 1;
}
