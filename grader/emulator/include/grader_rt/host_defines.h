// The words that nvcc adds to C++. Host and device code are compiled in one pass here, by an ordinary
// C++ compiler.
#pragma once

#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 88
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
// There is one pass, and it must see the device branch of `#ifdef __CUDA_ARCH__`: the host branch of such code
// is the one that nothing here runs. 900 (Hopper) is what the assignments are written for.
#define __CUDA_ARCH__ 900

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
// Only a declaration that the rewriter could not parse still says __shared__. An OS thread runs one block at a
// time and a block never changes its OS thread, so this is right; it only lacks red zones and the limits.
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __forceinline__ inline __attribute__((always_inline))
// Must be empty: libstdc++ and glibc write __attribute__((__noinline__)).
#define __noinline__
#define __inline_hint__
#ifndef __restrict__
#define __restrict__ __restrict
#endif
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __device_builtin__
#define __cudart_builtin__
#define __nv_pure__
#define CUDARTAPI
#define CUDART_CB
#define CUDAAPI
#define CUDA_CB

#define GRADER_INLINE inline __attribute__((always_inline))
#define GRADER_COLD __attribute__((noinline, cold))
