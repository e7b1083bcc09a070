// Checked mode looks at every access; compilers do not instrument these three functions.
#pragma once

#ifdef GRADER_CHECKED

#include <cstddef>

#pragma GCC visibility push(hidden)
extern "C" {
void* __tsan_memcpy(void* to, const void* from, std::size_t size);
void* __tsan_memmove(void* to, const void* from, std::size_t size);
void* __tsan_memset(void* to, int value, std::size_t size);
}
#pragma GCC visibility pop

#define GRADER_LOOKED_AT extern inline __attribute__((gnu_inline, always_inline))
extern "C" {
GRADER_LOOKED_AT void* memcpy(void* __restrict to, const void* __restrict from, std::size_t size) noexcept {
    return __tsan_memcpy(to, from, size);
}
GRADER_LOOKED_AT void* memmove(void* to, const void* from, std::size_t size) noexcept { return __tsan_memmove(to, from, size); }
GRADER_LOOKED_AT void* memset(void* to, int value, std::size_t size) noexcept { return __tsan_memset(to, value, size); }
}
#undef GRADER_LOOKED_AT

#endif
