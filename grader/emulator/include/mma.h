// nvcuda::wmma: products of small matrices by a whole warp.
//
// A fragment's elements are spread over the lanes in row-major order, the same number to each. CUDA leaves the
// placement open, so correct programs cannot tell. (On a GPU the operands' fragments hold each element twice.)
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
namespace precision {
struct tf32;
}
enum layout_t { mem_row_major, mem_col_major };

template <class T>
struct grader_storage {
    using type = T;
};
template <>
struct grader_storage<precision::tf32> {
    using type = float;
};

template <class Use, int M, int N, int K>
struct grader_shape;
template <int M, int N, int K>
struct grader_shape<matrix_a, M, N, K> {
    static constexpr int rows = M, columns = K;
};
template <int M, int N, int K>
struct grader_shape<matrix_b, M, N, K> {
    static constexpr int rows = K, columns = N;
};
template <int M, int N, int K>
struct grader_shape<accumulator, M, N, K> {
    static constexpr int rows = M, columns = N;
};

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
    using element_type = typename grader_storage<T>::type;
    using storage_element_type = element_type;
    static constexpr int grader_rows = grader_shape<Use, M, N, K>::rows;
    static constexpr int grader_columns = grader_shape<Use, M, N, K>::columns;
    static constexpr int num_elements = grader_rows * grader_columns / 32;
    static constexpr int num_storage_elements = num_elements;
    element_type x[num_elements];
};

template <class Fragment>
inline void grader_place(int element, int& row, int& column) {
    const int linear = static_cast<int>(grader_rt::lane_id()) * Fragment::num_elements + element;
    row = linear / Fragment::grader_columns;
    column = linear % Fragment::grader_columns;
}

template <class Fragment, class T>
inline void grader_load(Fragment& fragment, const T* memory, unsigned int stride, bool by_rows) {
    for (int i = 0; i < Fragment::num_elements; ++i) {
        int row, column;
        grader_place<Fragment>(i, row, column);
        const unsigned int major = static_cast<unsigned int>(by_rows ? row : column);
        fragment.x[i] = memory[major * stride + static_cast<unsigned int>(by_rows ? column : row)];
    }
}

template <class Use, int M, int N, int K, class T, class Layout, class Memory>
inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& fragment, const Memory* memory, unsigned int stride) {
    grader_load(fragment, memory, stride, std::is_same<Layout, row_major>::value);
}

template <int M, int N, int K, class T, class Memory>
inline void load_matrix_sync(fragment<accumulator, M, N, K, T>& fragment, const Memory* memory, unsigned int stride,
                             layout_t layout) {
    grader_load(fragment, memory, stride, layout == mem_row_major);
}

template <int M, int N, int K, class T, class Memory>
inline void store_matrix_sync(Memory* memory, const fragment<accumulator, M, N, K, T>& source, unsigned int stride,
                              layout_t layout) {
    using Fragment = fragment<accumulator, M, N, K, T>;
    for (int i = 0; i < Fragment::num_elements; ++i) {
        int row, column;
        grader_place<Fragment>(i, row, column);
        const unsigned int major = static_cast<unsigned int>(layout == mem_row_major ? row : column);
        memory[major * stride + static_cast<unsigned int>(layout == mem_row_major ? column : row)] = source.x[i];
    }
}

template <class Use, int M, int N, int K, class T, class Layout, class Value>
inline void fill_fragment(fragment<Use, M, N, K, T, Layout>& fragment, const Value& value) {
    for (auto& element : fragment.x) element = static_cast<typename grader_storage<T>::type>(value);
}

GRADER_INLINE float __float_to_tf32(float value) {
    return __uint_as_float((__float_as_uint(value) + 0xfffu + (__float_as_uint(value) >> 13 & 1u)) & 0xffffe000u);
}

// Every lane shows the others its operands, reads what it needs of them, and waits until all have read.
// Accumulates in float, or in double for double.
template <int M, int N, int K, class D, class A, class B, class C, class LayoutA, class LayoutB>
inline void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, A, LayoutA>& a,
                     const fragment<matrix_b, M, N, K, B, LayoutB>& b, const fragment<accumulator, M, N, K, C>& c) {
    using FragmentA = fragment<matrix_a, M, N, K, A, LayoutA>;
    using FragmentB = fragment<matrix_b, M, N, K, B, LayoutB>;
    using FragmentD = fragment<accumulator, M, N, K, D>;
    using Sum = typename std::conditional<std::is_same<D, double>::value, double, float>::type;
    struct Operands {
        const FragmentA* a;
        const FragmentB* b;
    };
    const Operands mine = {&a, &b};
    const std::uint64_t* shown = grader_rt::show_all(&mine);
    const auto of = [shown](int linear, int each) {
        return reinterpret_cast<const Operands*>(shown[linear / each]);
    };
    Sum sums[FragmentD::num_elements];
    for (int i = 0; i < FragmentD::num_elements; ++i) {
        int row, column;
        grader_place<FragmentD>(i, row, column);
        Sum sum = static_cast<Sum>(c.x[i]);
        for (int k = 0; k < K; ++k) {
            const int in_a = row * K + k, in_b = k * N + column;
            sum += static_cast<Sum>(of(in_a, FragmentA::num_elements)->a->x[in_a % FragmentA::num_elements]) *
                   static_cast<Sum>(of(in_b, FragmentB::num_elements)->b->x[in_b % FragmentB::num_elements]);
        }
        sums[i] = sum;
    }
    grader_rt::met_all();
    for (int i = 0; i < FragmentD::num_elements; ++i)
        d.x[i] = static_cast<typename grader_storage<D>::type>(sums[i]);
}

}  // namespace wmma
}  // namespace nvcuda
