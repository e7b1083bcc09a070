// Cooperative groups: the block, tiles of a warp, and the threads that are together.
#pragma once

#include "cuda_runtime.h"

namespace cooperative_groups {

class thread_block {
  public:
    void sync() const { __syncthreads(); }
    void barrier_arrive() const {}
    static unsigned int thread_rank() {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    static unsigned int size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned int num_threads() { return size(); }
    static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};

inline thread_block this_thread_block() { return thread_block(); }

// Some lanes of one warp, in the order of their bits.
class grader_lanes {
  public:
    explicit grader_lanes(unsigned int mask) : mask_(mask) {}
    void sync() const { __syncwarp(mask_); }
    unsigned int size() const { return static_cast<unsigned int>(__popc(mask_)); }
    unsigned int num_threads() const { return size(); }
    unsigned int thread_rank() const {
        return static_cast<unsigned int>(__popc(mask_ & ((1u << grader_rt::lane_id()) - 1u)));
    }
    template <class T>
    T shfl(T value, unsigned int rank) const {
        return grader_rt::shuffle(mask_, value, lane_of(rank % size()));
    }
    template <class T>
    T shfl_down(T value, unsigned int delta) const {
        const unsigned int rank = thread_rank();
        return grader_rt::shuffle(mask_, value, lane_of(rank + delta < size() ? rank + delta : rank));
    }
    template <class T>
    T shfl_up(T value, unsigned int delta) const {
        const unsigned int rank = thread_rank();
        return grader_rt::shuffle(mask_, value, lane_of(delta <= rank ? rank - delta : rank));
    }
    template <class T>
    T shfl_xor(T value, unsigned int bits) const {
        const unsigned int rank = thread_rank();
        return grader_rt::shuffle(mask_, value, lane_of((rank ^ bits) < size() ? rank ^ bits : rank));
    }
    int any(int predicate) const { return __any_sync(mask_, predicate); }
    int all(int predicate) const { return __all_sync(mask_, predicate); }
    unsigned int ballot(int predicate) const { return pack(__ballot_sync(mask_, predicate)); }
    template <class T>
    unsigned int match_any(T value) const {
        return pack(__match_any_sync(mask_, value));
    }
    unsigned int grader_mask() const { return mask_; }

  protected:
    unsigned int lane_of(unsigned int rank) const {
        unsigned int rest = mask_;
        while (rank-- > 0) rest &= rest - 1;
        return static_cast<unsigned int>(__builtin_ctz(rest));
    }
    // Bit r of the result is the lane of rank r.
    unsigned int pack(unsigned int lanes) const {
        unsigned int result = 0, rank = 0;
        for (unsigned int lane = 0; lane < 32; ++lane)
            if (mask_ >> lane & 1u) result |= (lanes >> lane & 1u) << rank++;
        return result;
    }
    unsigned int mask_;
};

template <unsigned int Size, class Parent = void>
class thread_block_tile : public grader_lanes {
  public:
    static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
    explicit thread_block_tile(unsigned int groups_of_parent)
        : grader_lanes((Size == 32 ? 0xffffffffu : (1u << Size % 32) - 1u) << (grader_rt::lane_id() & ~(Size - 1u))),
          groups_(groups_of_parent) {}
    static constexpr unsigned int size() { return Size; }
    static constexpr unsigned int num_threads() { return Size; }
    static unsigned int thread_rank() { return grader_rt::lane_id() & (Size - 1u); }
    unsigned int meta_group_rank() const { return thread_block::thread_rank() / Size % groups_; }
    unsigned int meta_group_size() const { return groups_; }
    template <class T>
    T shfl(T value, unsigned int rank) const {
        return __shfl_sync(mask_, value, static_cast<int>(rank), static_cast<int>(Size));
    }
    template <class T>
    T shfl_down(T value, unsigned int delta) const {
        return __shfl_down_sync(mask_, value, delta, static_cast<int>(Size));
    }
    template <class T>
    T shfl_up(T value, unsigned int delta) const {
        return __shfl_up_sync(mask_, value, delta, static_cast<int>(Size));
    }
    template <class T>
    T shfl_xor(T value, unsigned int bits) const {
        return __shfl_xor_sync(mask_, value, static_cast<int>(bits), static_cast<int>(Size));
    }

  private:
    unsigned int groups_;
};

class coalesced_group : public grader_lanes {
  public:
    using grader_lanes::grader_lanes;
};

inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <unsigned int Size, class Group>
inline thread_block_tile<Size, Group> tiled_partition(const Group& group) {
    return thread_block_tile<Size, Group>((static_cast<unsigned int>(group.size()) + Size - 1) / Size);
}

template <class Group>
inline void sync(const Group& group) {
    group.sync();
}

template <class T>
struct plus {
    T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
    T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
    T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
    T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
    T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
    T operator()(T a, T b) const { return a ^ b; }
};

template <unsigned int Size, class Parent, class T, class Combine>
inline T reduce(const thread_block_tile<Size, Parent>& tile, T value, Combine combine) {
    for (unsigned int bits = Size / 2; bits > 0; bits /= 2) value = combine(value, tile.shfl_xor(value, bits));
    return value;
}
template <class T, class Combine>
inline T reduce(const coalesced_group& group, T value, Combine combine) {
    return grader_rt::reduce(group.grader_mask(), value, combine);
}

template <class Group, class T, class Combine>
inline T inclusive_scan(const Group& group, T value, Combine combine) {
    const unsigned int rank = group.thread_rank();
    for (unsigned int delta = 1; delta < group.size(); delta *= 2) {
        T before = group.shfl_up(value, delta);
        if (rank >= delta) value = combine(before, value);
    }
    return value;
}
template <class Group, class T>
inline T inclusive_scan(const Group& group, T value) {
    return inclusive_scan(group, value, plus<T>());
}
template <class Group, class T, class Combine>
inline T exclusive_scan(const Group& group, T value, Combine combine) {
    T before = group.shfl_up(inclusive_scan(group, value, combine), 1);
    return group.thread_rank() == 0 ? T() : before;
}
template <class Group, class T>
inline T exclusive_scan(const Group& group, T value) {
    return exclusive_scan(group, value, plus<T>());
}

// The group's threads share the copy; it is done when wait() returns, and not before.
template <class Group>
inline void memcpy_async(const Group& group, void* to, const void* from, std::size_t bytes) {
    for (std::size_t at = static_cast<std::size_t>(group.thread_rank()) * 4; at < bytes; at += group.size() * 4ul)
        grader_rt::pipeline_copy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at,
                                 bytes - at < 4 ? bytes - at : 4, 0);
    grader_rt::pipeline_commit();
}
template <class Group, class T>
inline void memcpy_async(const Group& group, T* to, std::size_t, const T* from, std::size_t elements) {
    memcpy_async(group, static_cast<void*>(to), static_cast<const void*>(from), elements * sizeof(T));
}
template <class Group>
inline void wait(const Group& group) {
    grader_rt::pipeline_wait(0);
    group.sync();
}
template <unsigned int Stages, class Group>
inline void wait_prior(const Group& group) {
    grader_rt::pipeline_wait(Stages);
    group.sync();
}

}  // namespace cooperative_groups
