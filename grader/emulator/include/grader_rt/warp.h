// Barriers, shuffles, votes and reductions.
#pragma once

#include <cstring>

#include "core.h"

namespace grader_rt __attribute__((visibility("hidden"))) {

inline constexpr unsigned int all_lanes = 0xffffffffu;

// Comes to the collective of number `epoch` and returns when every live lane of the warp has. There is one
// place to wait at, so that all who wait here have the same program counter.
GRADER_INLINE void gather(Lane* self, Warp* warp, unsigned int epoch) {
    Lane* next;
    if (__builtin_expect(--warp->missing != 0, 1)) next = next_lane(self);
    else if (!(next = complete_collective(self))) return;
    self = resume(self, next);
    if (__builtin_expect(self->warp->epoch == epoch, 0)) wait_collective(self, epoch);
}

// A collective of some lanes of a warp, with values of its own.
struct Group {
    unsigned int mask;      // as the lanes gave it
    unsigned int members;   // those that came
    unsigned int readers;   // those that have not read yet
    bool complete;
    void* site;
    std::uint64_t slots[32];
};

GRADER_COLD Group* gather_group(Lane* self, unsigned int mask, std::uint64_t value);
GRADER_COLD unsigned int converged_mask(Lane* self);
GRADER_COLD void leave_group(Lane* self);
GRADER_COLD void yield_lane();

GRADER_INLINE bool is_full(unsigned int mask, const Warp* warp) {
    return mask == all_lanes || (mask & warp->live_mask) == warp->live_mask;
}

template <class T>
GRADER_INLINE std::uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value,
                  "a warp shuffle moves values of 4 or 8 bytes");
    std::uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <class T>
GRADER_INLINE T from_bits(const std::uint64_t& bits) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

template <class T>
GRADER_INLINE T shuffle(unsigned int mask, T value, unsigned int source) {
    Lane* self = self_or_fail("__shfl_sync");
    Warp* warp = self->warp;
    if (__builtin_expect(is_full(mask, warp), 1)) {
        const unsigned int epoch = warp->epoch;
        std::uint64_t* slots = warp->slots[epoch & 1];
        __builtin_memcpy(&slots[self->id], &value, sizeof(T));
        gather(self, warp, epoch);
        return from_bits<T>(slots[source]);
    }
    Group* group = gather_group(self, mask, to_bits(value));
    T result = from_bits<T>(group->slots[source]);
    leave_group(self);
    return result;
}

GRADER_INLINE unsigned int lane_id() { Lane* self = current_lane();
    return self ? self->id : 0; }

// The lanes of `mask` whose predicate holds.
GRADER_INLINE unsigned int ballot(unsigned int mask, bool predicate) {
    Lane* self = self_or_fail("__ballot_sync");
    Warp* warp = self->warp;
    if (__builtin_expect(is_full(mask, warp), 1)) {
        const unsigned int epoch = warp->epoch;
        if (predicate) warp->ballot[epoch & 1] |= 1u << self->id;
        gather(self, warp, epoch);
        return warp->ballot[epoch & 1];
    }
    Group* group = gather_group(self, mask, predicate);
    unsigned int result = 0;
    for (unsigned int lane = 0; lane < 32; ++lane)
        if (group->members >> lane & 1 && group->slots[lane]) result |= 1u << lane;
    leave_group(self);
    return result;
}

// Combines the values of the lanes in `mask`, in the order of the lanes.
template <class T, class Combine>
inline T reduce(unsigned int mask, T value, Combine combine) {
    Lane* self = self_or_fail("__reduce_sync");
    Warp* warp = self->warp;
    const bool full = is_full(mask, warp);
    const std::uint64_t* slots;
    unsigned int members;
    if (full) {
        const unsigned int epoch = warp->epoch;
        slots = warp->slots[epoch & 1];
        members = warp->live_mask;
        warp->slots[epoch & 1][self->id] = to_bits(value);
        gather(self, warp, epoch);
        members = warp->live_mask & mask;
    } else {
        Group* group = gather_group(self, mask, to_bits(value));
        slots = group->slots;
        members = group->members;
    }
    bool first = true;
    T result = value;
    for (unsigned int lane = 0; lane < 32; ++lane) {
        if (!(members >> lane & 1)) continue;
        T other = from_bits<T>(slots[lane]);
        result = first ? other : combine(result, other);
        first = false;
    }
    if (!full) leave_group(self);
    return result;
}

template <class T>
inline unsigned int match_any(unsigned int mask, T value) {
    Lane* self = self_or_fail("__match_any_sync");
    Group* group = gather_group(self, mask, to_bits(value));
    unsigned int result = 0;
    for (unsigned int lane = 0; lane < 32; ++lane)
        if (group->members >> lane & 1 && group->slots[lane] == to_bits(value)) result |= 1u << lane;
    leave_group(self);
    return result;
}

// Checked mode has to know what __syncwarp() orders, and which barrier a lane has come to.
#ifdef GRADER_CHECKED
GRADER_COLD void checked_arrives(int line);
void checked_warp_met(unsigned int epoch);
void checked_lane_arrives();
void checked_lane_leaves(unsigned int members);
#else
GRADER_INLINE void checked_warp_met(unsigned int) {}
GRADER_INLINE void checked_lane_arrives() {}
GRADER_INLINE void checked_lane_leaves(unsigned int) {}
#endif

// Shows all lanes of the warp a pointer; until met_all() what it points to stays.
GRADER_INLINE const std::uint64_t* show_all(const void* mine) {
    Lane* self = self_or_fail("a matrix product of a warp");
    Warp* warp = self->warp;
    const unsigned int epoch = warp->epoch;
    std::uint64_t* slots = warp->slots[epoch & 1];
    slots[self->id] = reinterpret_cast<std::uintptr_t>(mine);
    gather(self, warp, epoch);
    return slots;
}
GRADER_INLINE void met_all() {
    Lane* self = current_lane();
    gather(self, self->warp, self->warp->epoch);
}

// A lane's asynchronous copies; batches end at a commit.
void pipeline_copy(void* to, const void* from, std::size_t size, std::size_t zero_fill);
void pipeline_commit();
void pipeline_wait(unsigned int stages);

GRADER_COLD int barrier_vote(bool predicate, bool count_true, void* site);

}  // namespace grader_rt

#ifdef GRADER_CHECKED
GRADER_INLINE void __syncthreads(int line = __builtin_LINE()) {
    grader_rt::checked_arrives(line);
#else
GRADER_INLINE void __syncthreads() {
#endif
    grader_rt::Lane* self = grader_rt::self_or_fail("__syncthreads");
    grader_rt::Warp* warp = self->warp;
    const unsigned int epoch = warp->barrier_epoch;
    grader_rt::Lane* next;
    if (__builtin_expect(--warp->barrier_missing != 0, 1)) next = grader_rt::next_lane(self);
    else if (!(next = grader_rt::complete_barrier(self))) return;
    self = grader_rt::resume(self, next);
    if (__builtin_expect(self->warp->barrier_epoch == epoch, 0)) grader_rt::wait_barrier(self, epoch);
}

int __syncthreads_count(int predicate) __attribute__((visibility("hidden")));
int __syncthreads_and(int predicate) __attribute__((visibility("hidden")));
int __syncthreads_or(int predicate) __attribute__((visibility("hidden")));

GRADER_INLINE void __syncwarp(unsigned int mask = grader_rt::all_lanes) {
    grader_rt::Lane* self = grader_rt::self_or_fail("__syncwarp");
    grader_rt::Warp* warp = self->warp;
    if (__builtin_expect(grader_rt::is_full(mask, warp), 1)) {
        const unsigned int epoch = warp->epoch;
        grader_rt::gather(self, warp, epoch);
        grader_rt::checked_warp_met(epoch);
    } else {
        grader_rt::checked_lane_arrives();
        grader_rt::checked_lane_leaves(grader_rt::gather_group(self, mask, 0)->members);
        grader_rt::leave_group(grader_rt::current_lane());
    }
}

// `width` (a power of two) splits the warp into segments; a source outside the segment means oneself.
template <class T>
GRADER_INLINE T __shfl_sync(unsigned int mask, T value, int source, int width = 32) {
    const unsigned int lane = grader_rt::lane_id();
    const unsigned int segment = static_cast<unsigned int>(width) - 1;
    return grader_rt::shuffle(mask, value, (lane & ~segment & 31) | (static_cast<unsigned int>(source) & segment & 31));
}

template <class T>
GRADER_INLINE T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
    const unsigned int lane = grader_rt::lane_id();
    const unsigned int inside = lane & (static_cast<unsigned int>(width) - 1);
    return grader_rt::shuffle(mask, value, delta <= inside ? lane - delta : lane);
}

template <class T>
GRADER_INLINE T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
    const unsigned int lane = grader_rt::lane_id();
    const unsigned int inside = lane & (static_cast<unsigned int>(width) - 1);
    return grader_rt::shuffle(mask, value, inside + delta < static_cast<unsigned int>(width) ? lane + delta : lane);
}

template <class T>
GRADER_INLINE T __shfl_xor_sync(unsigned int mask, T value, int lane_mask, int width = 32) {
    const unsigned int lane = grader_rt::lane_id();
    const unsigned int source = lane ^ static_cast<unsigned int>(lane_mask);
    // As the hardware: segments before one's own can be read, those after it cannot.
    const unsigned int limit = (lane | (static_cast<unsigned int>(width) - 1)) & 31;
    return grader_rt::shuffle(mask, value, source <= limit ? source : lane);
}

GRADER_INLINE unsigned int __ballot_sync(unsigned int mask, int predicate) {
    return grader_rt::ballot(mask, predicate != 0);
}
GRADER_INLINE int __any_sync(unsigned int mask, int predicate) { return grader_rt::ballot(mask, predicate != 0) != 0; }
GRADER_INLINE int __all_sync(unsigned int mask, int predicate) { return grader_rt::ballot(mask, predicate == 0) == 0; }
GRADER_INLINE int __uni_sync(unsigned int mask, int predicate) {
    return __all_sync(mask, predicate) || __all_sync(mask, !predicate);
}
inline unsigned int __activemask() { return grader_rt::converged_mask(grader_rt::self_or_fail("__activemask")); }

template <class T>
inline unsigned int __match_any_sync(unsigned int mask, T value) {
    return grader_rt::match_any(mask, value);
}
template <class T>
inline unsigned int __match_all_sync(unsigned int mask, T value, int* all_equal) {
    const unsigned int equal = grader_rt::match_any(mask, value);
    *all_equal = __all_sync(mask, (equal & mask) == (mask & grader_rt::current_lane()->warp->live_mask));
    return *all_equal ? equal : 0;
}

#define GRADER_REDUCE(name, type, expression)                                                \
    inline type __reduce_##name##_sync(unsigned int mask, type value) {                      \
        return grader_rt::reduce(mask, value, [](type a, type b) -> type { return expression; }); \
    }
GRADER_REDUCE(add, unsigned int, a + b)
GRADER_REDUCE(add, int, static_cast<int>(static_cast<unsigned int>(a) + static_cast<unsigned int>(b)))
GRADER_REDUCE(min, unsigned int, a < b ? a : b)
GRADER_REDUCE(min, int, a < b ? a : b)
GRADER_REDUCE(max, unsigned int, a > b ? a : b)
GRADER_REDUCE(max, int, a > b ? a : b)
GRADER_REDUCE(and, unsigned int, a & b)
GRADER_REDUCE(or, unsigned int, a | b)
GRADER_REDUCE(xor, unsigned int, a ^ b)
#undef GRADER_REDUCE

// Cooperative fibers: a spinning lane must let others run now and then.
inline void __nanosleep(unsigned int) { grader_rt::yield_lane(); }
