// Atomics on global and shared memory: real ones, since blocks run on several OS threads.
#pragma once

#include "warp.h"

namespace grader_rt __attribute__((visibility("hidden"))) {

// Applies `change` until no other thread has come between; returns the old value, as CUDA's atomics do.
template <class T, class Change>
GRADER_INLINE T atomic_change(T* address, Change change) {
    T old, next;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    do {
        next = change(old);
    } while (!__atomic_compare_exchange(address, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

// A lane that spins on a lock must let the lane run that holds it.
GRADER_COLD void lost_race();

template <class T>
GRADER_INLINE T compare_and_swap(T* address, T expected, T desired) {
    if (!__atomic_compare_exchange(address, &expected, &desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) lost_race();
    return expected;
}

}  // namespace grader_rt

#define GRADER_ATOMIC(name, type, expression)                                                            \
    GRADER_INLINE type name(type* address, type value) {                                                 \
        return grader_rt::atomic_change(address, [value](type old) -> type { return expression; });      \
    }                                                                                                    \
    GRADER_INLINE type name##_block(type* address, type value) { return name(address, value); }          \
    GRADER_INLINE type name##_system(type* address, type value) { return name(address, value); }
#define GRADER_ATOMIC_FETCH(name, type, builtin)                                                         \
    GRADER_INLINE type name(type* address, type value) { return builtin(address, value, __ATOMIC_RELAXED); } \
    GRADER_INLINE type name##_block(type* address, type value) { return name(address, value); }          \
    GRADER_INLINE type name##_system(type* address, type value) { return name(address, value); }

GRADER_ATOMIC_FETCH(atomicAdd, int, __atomic_fetch_add)
GRADER_ATOMIC_FETCH(atomicAdd, unsigned int, __atomic_fetch_add)
GRADER_ATOMIC_FETCH(atomicAdd, unsigned long long, __atomic_fetch_add)
GRADER_ATOMIC(atomicAdd, float, old + value)
GRADER_ATOMIC(atomicAdd, double, old + value)
GRADER_ATOMIC_FETCH(atomicSub, int, __atomic_fetch_sub)
GRADER_ATOMIC_FETCH(atomicSub, unsigned int, __atomic_fetch_sub)
GRADER_ATOMIC_FETCH(atomicAnd, int, __atomic_fetch_and)
GRADER_ATOMIC_FETCH(atomicAnd, unsigned int, __atomic_fetch_and)
GRADER_ATOMIC_FETCH(atomicAnd, unsigned long long, __atomic_fetch_and)
GRADER_ATOMIC_FETCH(atomicOr, int, __atomic_fetch_or)
GRADER_ATOMIC_FETCH(atomicOr, unsigned int, __atomic_fetch_or)
GRADER_ATOMIC_FETCH(atomicOr, unsigned long long, __atomic_fetch_or)
GRADER_ATOMIC_FETCH(atomicXor, int, __atomic_fetch_xor)
GRADER_ATOMIC_FETCH(atomicXor, unsigned int, __atomic_fetch_xor)
GRADER_ATOMIC_FETCH(atomicXor, unsigned long long, __atomic_fetch_xor)
GRADER_ATOMIC(atomicMin, int, value < old ? value : old)
GRADER_ATOMIC(atomicMin, unsigned int, value < old ? value : old)
GRADER_ATOMIC(atomicMin, long long, value < old ? value : old)
GRADER_ATOMIC(atomicMin, unsigned long long, value < old ? value : old)
GRADER_ATOMIC(atomicMax, int, value > old ? value : old)
GRADER_ATOMIC(atomicMax, unsigned int, value > old ? value : old)
GRADER_ATOMIC(atomicMax, long long, value > old ? value : old)
GRADER_ATOMIC(atomicMax, unsigned long long, value > old ? value : old)
GRADER_ATOMIC(atomicInc, unsigned int, old >= value ? 0u : old + 1)
GRADER_ATOMIC(atomicDec, unsigned int, old == 0 || old > value ? value : old - 1)

#undef GRADER_ATOMIC
#undef GRADER_ATOMIC_FETCH

#define GRADER_ATOMIC_EXCHANGE(type)                                                         \
    GRADER_INLINE type atomicExch(type* address, type value) {                               \
        type old;                                                                            \
        __atomic_exchange(address, &value, &old, __ATOMIC_SEQ_CST);                          \
        return old;                                                                          \
    }                                                                                        \
    GRADER_INLINE type atomicExch_block(type* address, type value) { return atomicExch(address, value); }
#define GRADER_ATOMIC_CAS(type)                                                              \
    GRADER_INLINE type atomicCAS(type* address, type expected, type desired) {               \
        return grader_rt::compare_and_swap(address, expected, desired);                      \
    }                                                                                        \
    GRADER_INLINE type atomicCAS_block(type* address, type expected, type desired) {         \
        return grader_rt::compare_and_swap(address, expected, desired);                      \
    }

GRADER_ATOMIC_EXCHANGE(int)
GRADER_ATOMIC_EXCHANGE(unsigned int)
GRADER_ATOMIC_EXCHANGE(unsigned long long)
GRADER_ATOMIC_EXCHANGE(float)
GRADER_ATOMIC_CAS(int)
GRADER_ATOMIC_CAS(unsigned int)
GRADER_ATOMIC_CAS(unsigned long long)
GRADER_ATOMIC_CAS(unsigned short)

#undef GRADER_ATOMIC_EXCHANGE
#undef GRADER_ATOMIC_CAS

GRADER_INLINE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
GRADER_INLINE void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
GRADER_INLINE void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
