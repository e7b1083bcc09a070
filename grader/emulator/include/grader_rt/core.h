// What generated code and the runtime share: lanes, warps, and the switch from one lane to another.
//
// A thread of a block is a *lane*: a fiber with a stack of its own, once it has to wait. The lanes of a warp
// that can run form a ring. Where a lane waits for the others it goes directly to the next lane of the ring,
// and when the ring has come round the wait is over. A lane that is resumed too early (others have diverged)
// parks itself: it leaves the ring until its condition is met (runtime/scheduler.inc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "vector_types.h"

#define GRADER_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) __thread

namespace grader_rt __attribute__((visibility("hidden"))) {

struct Worker;
struct Lane;
struct Warp;
struct Group;

struct alignas(16) Index : uint3 {};

// threadIdx, and beside it, so that both are found with one look, the lane that runs: null in host code.
struct ThreadIndex : uint3 {
    unsigned int grader_unused;
    Lane* grader_lane;
};
// Copied in one move.
typedef long long Quad __attribute__((vector_size(16), may_alias));

// Trivial, unlike dim3, so that a thread-local one needs no constructor.
struct alignas(16) Extent {
    unsigned int x, y, z;
    constexpr operator dim3() const { return dim3(x, y, z); }
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

struct alignas(64) Lane {
    void* pc;  // where to go on; the first three are known to switch_lanes()
    void* sp;
    void* fp;
    Lane* next;  // the ring of lanes that can run
    Warp* warp;
    unsigned int id;      // in its warp, as __shfl_sync counts
    unsigned int status;  // enum in the scheduler
    alignas(16) uint3 at;  // threadIdx
    Lane* prev;
    void* home;   // top of the stack where it starts, unless it can use that of a lane that has returned
    void* site;   // where it waits, for messages
    Group* group;
    unsigned int wait_mask;
};

// Full-warp collectives are numbered by `epoch`; those in flight use the slots of its parity.
struct alignas(64) Warp {
    unsigned int missing;  // live lanes that have not come to the collective
    unsigned int epoch;
    unsigned int barrier_missing;  // live lanes that have not come to __syncthreads()
    unsigned int barrier_epoch;
    unsigned int live_mask;
    unsigned int live;
    unsigned int state;
    bool solo;  // its lanes run one after the other on one stack; none has waited yet
    Worker* worker;
    Lane* ring;
    Lane* begin;
    Lane* end;
    unsigned int parked;
    unsigned int ballot[2];
    unsigned int index;  // place in the order of running
    alignas(64) std::uint64_t slots[2][32];
};

extern GRADER_THREAD_LOCAL std::uint64_t launch_id;
extern GRADER_THREAD_LOCAL char* shared_arena;
extern GRADER_THREAD_LOCAL char* dynamic_shared;

}  // namespace grader_rt

// Real variables and no macros: students write `dim3 blockDim(16, 16)`.
#pragma GCC visibility push(hidden)
extern GRADER_THREAD_LOCAL grader_rt::ThreadIndex threadIdx __attribute__((aligned(16)));
extern GRADER_THREAD_LOCAL grader_rt::Index blockIdx;
extern GRADER_THREAD_LOCAL grader_rt::Extent blockDim;
extern GRADER_THREAD_LOCAL grader_rt::Extent gridDim;
#pragma GCC visibility pop
static constexpr int warpSize = 32;

namespace grader_rt {

// Saves this lane in `from` and goes on with `to`; returns, when somebody switches back, `from`.
//
// Inline and with every register clobbered, so that the compiler spills only what is live, and so that the
// jump of each wait is predicted: lanes that wait at one place all go on there. `to` stays in its register
// across the jump, and is then the lane that was resumed. Nothing is pushed: kernels use the red zone.
GRADER_INLINE Lane* switch_lanes(Lane* from, Lane* to) {
#if defined(__x86_64__)
    asm volatile(
        "leaq 1f(%%rip), %%rax\n\t"
        "movq %%rax, (%%rdi)\n\t"
        "movq %%rsp, 8(%%rdi)\n\t"
        "movq %%rbp, 16(%%rdi)\n\t"
        "movq 8(%%rsi), %%rsp\n\t"
        "movq 16(%%rsi), %%rbp\n\t"
        "jmpq *(%%rsi)\n"
        "1:"
        : "+D"(from), "+S"(to)
        :
        : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
          "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
          "xmm14", "xmm15", "memory", "cc");
    return to;
#elif defined(__aarch64__)
    register Lane* leave asm("x0") = from;
    register Lane* enter asm("x1") = to;
    asm volatile(
        "adr x16, 1f\n\t"
        "mov x17, sp\n\t"
        "stp x16, x17, [x0]\n\t"
        "str x29, [x0, #16]\n\t"
        "ldp x16, x17, [x1]\n\t"
        "ldr x29, [x1, #16]\n\t"
        "mov sp, x17\n\t"
        "br x16\n"
        "1:"
        : "+r"(leave), "+r"(enter)
        :
        : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
          "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1",
          "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",
          "v31", "memory", "cc");
    return enter;
#else
#error "flashgrade's CPU device runs on x86-64 and arm64"
#endif
}

// Goes on with `to` without keeping anything of the present.
[[noreturn]] GRADER_INLINE void jump_to_lane(Lane* from, Lane* to) {
#if defined(__x86_64__)
    asm volatile(
        "movq 8(%%rsi), %%rsp\n\t"
        "movq 16(%%rsi), %%rbp\n\t"
        "jmpq *(%%rsi)\n"
        :
        : "D"(from), "S"(to)
        : "memory");
#else
    register Lane* leave asm("x0") = from;
    register Lane* enter asm("x1") = to;
    asm volatile(
        "ldp x16, x17, [x1]\n\t"
        "ldr x29, [x1, #16]\n\t"
        "mov x30, xzr\n\t"
        "mov sp, x17\n\t"
        "br x16\n"
        :
        : "r"(leave), "r"(enter)
        : "memory");
#endif
    __builtin_unreachable();
}

GRADER_INLINE Lane* current_lane() { return ::threadIdx.grader_lane; }

GRADER_INLINE void make_current(Lane* lane) {
    ::threadIdx.grader_lane = lane;
    *reinterpret_cast<Quad*>(&::threadIdx) = *reinterpret_cast<Quad*>(&lane->at);
}

GRADER_INLINE Lane* resume(Lane* from, Lane* to) {
    make_current(to);
    return switch_lanes(from, to);
}

// The next lane of the ring, which nearly always is the next in memory: the branch lets the processor go on
// before the pointer has been loaded.
GRADER_INLINE Lane* next_lane(Lane* self) {
    Lane* next = self->next;
    Lane* guess = self + 1;
    if (__builtin_expect(next != guess, 0)) return next;
    asm("" : "+r"(guess));  // or the compiler sees that both are the same
    return guess;
}

// The last lane of the warp has come, or the first that waits at all: returns the lane to go on with, or null
// when the wait is over.
GRADER_COLD Lane* complete_collective(Lane* self);
GRADER_COLD Lane* complete_barrier(Lane* self);
// Resumed too early.
GRADER_COLD void wait_collective(Lane* self, unsigned int epoch);
GRADER_COLD void wait_barrier(Lane* self, unsigned int epoch);
[[noreturn]] GRADER_COLD void no_kernel(const char* what);

GRADER_INLINE Lane* self_or_fail(const char* what) {
    Lane* self = current_lane();
    if (__builtin_expect(self == nullptr, 0)) no_kernel(what);
    return self;
}

}  // namespace grader_rt
