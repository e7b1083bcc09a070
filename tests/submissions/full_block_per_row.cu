// expect: full; A block per row: 128 threads score 128 keys at a time and reduce in shared memory.
#include <cuda_runtime.h>
#include <cmath>

const int THREADS = 128;

__global__ void flash_attn_forward_kernel(const float *Q, const float *K, const float *V, float *O, int N, int d) {
  __shared__ float query[128];
  __shared__ float weight[THREADS];
  __shared__ float reduce[THREADS];

  const int t = threadIdx.x;
  const int i = blockIdx.x;
  if (t < d) query[t] = Q[(size_t)i * d + t];
  float m = -INFINITY, l = 0.f, acc = 0.f;
  __syncthreads();

  for (int base = 0; base < N; base += THREADS) {
    const int j = base + t;
    float s = -INFINITY;
    if (j < N) {
      s = 0.f;
      for (int k = 0; k < d; ++k) s += query[k] * K[(size_t)j * d + k];
      s /= sqrtf((float)d);
    }
    // maximum of the chunk
    reduce[t] = s;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
      if (t < half) reduce[t] = fmaxf(reduce[t], reduce[t + half]);
      __syncthreads();
    }
    const float m_new = fmaxf(m, reduce[0]);
    const float p = expf(s - m_new);
    __syncthreads();  // everybody has read reduce[0]
    // sum of the chunk
    weight[t] = p;
    reduce[t] = p;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
      if (t < half) reduce[t] += reduce[t + half];
      __syncthreads();
    }
    const float alpha = expf(m - m_new);
    l = l * alpha + reduce[0];
    m = m_new;
    if (t < d) {
      acc *= alpha;
      for (int c = 0; c < THREADS && base + c < N; ++c) acc += weight[c] * V[(size_t)(base + c) * d + t];
    }
    __syncthreads();  // weight and reduce are free again
  }
  if (t < d) O[(size_t)i * d + t] = acc / l;
}

void flash_attn_forward_cuda(const float *d_Q, const float *d_K, const float *d_V, float *d_O, int N, int d) {
  flash_attn_forward_kernel<<<N, THREADS>>>(d_Q, d_K, d_V, d_O, N, d);
  cudaDeviceSynchronize();
}
