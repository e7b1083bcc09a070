// The C++ overloads of the host API: typed pointers, symbols, default arguments.
#pragma once

#include "../cuda_runtime_api.h"
#include "launch.h"

template <class T>
inline cudaError_t cudaMalloc(T** pointer, std::size_t size) {
    return ::cudaMalloc((void**)(void*)pointer, size);
}
template <class T>
inline cudaError_t cudaMallocManaged(T** pointer, std::size_t size, unsigned int flags = cudaMemAttachGlobal) {
    return ::cudaMallocManaged((void**)(void*)pointer, size, flags);
}
template <class T>
inline cudaError_t cudaMallocHost(T** pointer, std::size_t size, unsigned int flags = cudaHostAllocDefault) {
    return ::cudaMallocHost((void**)(void*)pointer, size, flags);
}
template <class T>
inline cudaError_t cudaHostAlloc(T** pointer, std::size_t size, unsigned int flags) {
    return ::cudaHostAlloc((void**)(void*)pointer, size, flags);
}
template <class T>
inline cudaError_t cudaMallocPitch(T** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
    return ::cudaMallocPitch((void**)(void*)pointer, pitch, width, height);
}
template <class T>
inline cudaError_t cudaMallocAsync(T** pointer, std::size_t size, cudaStream_t stream) {
    return ::cudaMallocAsync((void**)(void*)pointer, size, stream);
}
template <class T>
inline cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned int flags) {
    return ::cudaHostGetDevicePointer((void**)(void*)device, host, flags);
}

// Default arguments that the C declarations cannot have.
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t count, cudaMemcpyKind kind) {
    return ::cudaMemcpyAsync(to, from, count, kind, nullptr);
}
inline cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t count) {
    return ::cudaMemsetAsync(pointer, value, count, nullptr);
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned int flags) {
    return ::cudaEventCreateWithFlags(event, flags);
}
inline cudaError_t cudaEventRecord(cudaEvent_t event) { return ::cudaEventRecord(event, nullptr); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event) {
    return ::cudaStreamWaitEvent(stream, event, 0);
}
inline cudaError_t cudaMemPrefetchAsync(const void* pointer, std::size_t count, int device) {
    return ::cudaMemPrefetchAsync(pointer, count, device, nullptr);
}
inline cudaError_t cudaMemPrefetchAsync(const void* pointer, std::size_t count, cudaMemLocation,
                                        unsigned int, cudaStream_t stream = nullptr) {
    return ::cudaMemPrefetchAsync(pointer, count, 0, stream);
}
inline cudaError_t cudaMemAdvise(const void* pointer, std::size_t count, cudaMemoryAdvise advice, cudaMemLocation) {
    return ::cudaMemAdvise(pointer, count, advice, 0);
}

template <class T>
inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, std::size_t count, std::size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    return grader_rt_symbol_copy((void*)&symbol, sizeof(T), const_cast<void*>(from), count, offset, kind, 1);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t count, std::size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    return grader_rt_symbol_copy((void*)&symbol, sizeof(T), to, count, offset, kind, 0);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, std::size_t count, std::size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t = nullptr) {
    return grader_rt_symbol_copy((void*)&symbol, sizeof(T), const_cast<void*>(from), count, offset, kind, 1);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t count, std::size_t offset,
                                             cudaMemcpyKind kind, cudaStream_t = nullptr) {
    return grader_rt_symbol_copy((void*)&symbol, sizeof(T), to, count, offset, kind, 0);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** pointer, const T& symbol) {
    *pointer = (void*)&symbol;
    return cudaSuccess;
}
template <class T, class U>
inline cudaError_t cudaGetSymbolAddress(T** pointer, const U& symbol) {
    *pointer = (T*)(void*)&symbol;
    return cudaSuccess;
}
template <class T>
inline cudaError_t cudaGetSymbolSize(std::size_t* size, const T&) {
    *size = sizeof(T);
    return cudaSuccess;
}

template <class... P>
inline cudaError_t cudaFuncSetAttribute(void (*function)(P...), cudaFuncAttribute attribute, int value) {
    return ::cudaFuncSetAttribute((const void*)function, attribute, value);
}
template <class... P>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*function)(P...)) {
    return ::cudaFuncGetAttributes(attributes, (const void*)function);
}
template <class... P>
inline cudaError_t cudaFuncSetCacheConfig(void (*function)(P...), cudaFuncCache config) {
    return ::cudaFuncSetCacheConfig((const void*)function, config);
}
template <class... P>
inline cudaError_t cudaFuncSetSharedMemConfig(void (*function)(P...), cudaSharedMemConfig config) {
    return ::cudaFuncSetSharedMemConfig((const void*)function, config);
}
template <class... P>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void (*function)(P...), int block_size,
                                                                 std::size_t dynamic_shared) {
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void*)function, block_size, dynamic_shared);
}
template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid_size, int* block_size, T, std::size_t = 0,
                                                      int limit = 0) {
    *block_size = limit > 0 && limit < 1024 ? limit : 1024;
    *grid_size = 264;
    return cudaSuccess;
}
template <class T, class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid_size, int* block_size, T, F,
                                                                  int limit = 0) {
    *block_size = limit > 0 && limit < 1024 ? limit : 1024;
    *grid_size = 264;
    return cudaSuccess;
}

namespace grader_rt __attribute__((visibility("hidden"))) {
int last_error();

template <class... P, std::size_t... I>
inline void start_packed(Launch& launch, void (*function)(P...), void** arguments, std::index_sequence<I...>) {
    (void)arguments;
    start(launch, function, *static_cast<std::remove_cv_t<P>*>(arguments[I])...);
}
}  // namespace grader_rt

template <class... P>
inline cudaError_t cudaLaunchKernel(void (*function)(P...), dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared = 0, cudaStream_t = nullptr) {
    grader_rt::Launch launch{"cudaLaunchKernel", 0, {grid, block, shared}, (const void*)function, nullptr, nullptr};
    grader_rt::start_packed(launch, function, arguments, std::index_sequence_for<P...>{});
    return cudaPeekAtLastError();
}
