// __half and __nv_bfloat16: 16 bits in memory, arithmetic in float and rounded after each operation, as on the
// device (to nearest, ties to even).
#pragma once

#include "../cuda_runtime.h"

namespace grader_rt __attribute__((visibility("hidden"))) {

GRADER_INLINE unsigned short float_to_half_bits(float value) {
    unsigned int bits = __float_as_uint(value);
    const unsigned int sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return 0x7fff;                                          // NaN
    if (bits >= 0x47800000u) return static_cast<unsigned short>(sign | 0x7c00u);    // 65536 and more
    if (bits < 0x38800000u)                                                         // below 2^-14: subnormal
        // Adding 0.5 puts the last bit of a subnormal half where float rounds.
        return static_cast<unsigned short>(sign | (__float_as_uint(__uint_as_float(bits) + 0.5f) - 0x3f000000u));
    return static_cast<unsigned short>(sign | ((bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13));
}

GRADER_INLINE float half_bits_to_float(unsigned short half) {
    const unsigned int sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude < 0x400u) return __uint_as_float(sign | __float_as_uint(static_cast<float>(magnitude) * 0x1p-24f));
    return __uint_as_float(sign | ((magnitude << 13) + 0x38000000u));
}

GRADER_INLINE unsigned short float_to_bfloat16_bits(float value) {
    const unsigned int bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

GRADER_INLINE float bfloat16_bits_to_float(unsigned short bits) { return __uint_as_float(static_cast<unsigned int>(bits) << 16); }

}  // namespace grader_rt

// The type, its pair, the operators, and the functions that both kinds of 16-bit float have.
#define GRADER_SMALL_FLOAT(T, T2, raw, to_bits, to_float)                                                        \
    struct raw { unsigned short x; };                                                                            \
    struct T {                                                                                                   \
        unsigned short __x;                                                                                      \
        T() = default;                                                                                           \
        GRADER_INLINE T(raw value) : __x(value.x) {}                                                             \
        GRADER_INLINE T(float value) : __x(grader_rt::to_bits(value)) {}                                         \
        GRADER_INLINE T(double value) : __x(grader_rt::to_bits(static_cast<float>(value))) {}                    \
        GRADER_INLINE T(int value) : __x(grader_rt::to_bits(static_cast<float>(value))) {}                       \
        GRADER_INLINE T(unsigned int value) : __x(grader_rt::to_bits(static_cast<float>(value))) {}              \
        GRADER_INLINE T(long value) : __x(grader_rt::to_bits(static_cast<float>(value))) {}                      \
        GRADER_INLINE T(unsigned long value) : __x(grader_rt::to_bits(static_cast<float>(value))) {}             \
        GRADER_INLINE T(long long value) : __x(grader_rt::to_bits(static_cast<float>(value))) {}                 \
        GRADER_INLINE T(unsigned long long value) : __x(grader_rt::to_bits(static_cast<float>(value))) {}        \
        GRADER_INLINE operator float() const { return grader_rt::to_float(__x); }                                \
        GRADER_INLINE operator raw() const { return raw{__x}; }                                                  \
        GRADER_INLINE T& operator=(float value) { return *this = T(value); }                                     \
        GRADER_INLINE T& operator=(double value) { return *this = T(value); }                                    \
        GRADER_INLINE T& operator=(int value) { return *this = T(value); }                                       \
    };                                                                                                           \
    struct alignas(4) T2 {                                                                                       \
        T x, y;                                                                                                  \
        T2() = default;                                                                                          \
        GRADER_INLINE T2(T a, T b) : x(a), y(b) {}                                                               \
    };                                                                                                           \
    GRADER_SMALL_OPERATOR(T, T2, +, hadd)                                                                        \
    GRADER_SMALL_OPERATOR(T, T2, -, hsub)                                                                        \
    GRADER_SMALL_OPERATOR(T, T2, *, hmul)                                                                        \
    GRADER_INLINE T operator/(const T& a, const T& b) { return T((float)a / (float)b); }                         \
    GRADER_INLINE T2 operator/(const T2& a, const T2& b) { return T2(a.x / b.x, a.y / b.y); }                    \
    GRADER_INLINE T& operator/=(T& a, const T& b) { return a = a / b; }                                          \
    GRADER_INLINE T __hdiv(T a, T b) { return a / b; }                                                           \
    GRADER_INLINE T2 __h2div(T2 a, T2 b) { return a / b; }                                                       \
    GRADER_INLINE T operator-(const T& a) { return T(raw{static_cast<unsigned short>(a.__x ^ 0x8000u)}); }       \
    GRADER_INLINE T operator+(const T& a) { return a; }                                                          \
    GRADER_INLINE T2 operator-(const T2& a) { return T2(-a.x, -a.y); }                                           \
    GRADER_INLINE T& operator++(T& a) { return a = T((float)a + 1.0f); }                                         \
    GRADER_SMALL_COMPARE(T, T2, ==, heq)                                                                         \
    GRADER_SMALL_COMPARE(T, T2, !=, hne)                                                                         \
    GRADER_SMALL_COMPARE(T, T2, <, hlt)                                                                          \
    GRADER_SMALL_COMPARE(T, T2, <=, hle)                                                                         \
    GRADER_SMALL_COMPARE(T, T2, >, hgt)                                                                          \
    GRADER_SMALL_COMPARE(T, T2, >=, hge)                                                                         \
    GRADER_INLINE T __hneg(T a) { return -a; }                                                                   \
    GRADER_INLINE T2 __hneg2(T2 a) { return -a; }                                                                \
    GRADER_INLINE T __habs(T a) { return T(raw{static_cast<unsigned short>(a.__x & 0x7fffu)}); }                 \
    GRADER_INLINE T2 __habs2(T2 a) { return T2(__habs(a.x), __habs(a.y)); }                                      \
    GRADER_INLINE T __hfma(T a, T b, T c) { return T((float)::fma((double)(float)a, (double)(float)b, (double)(float)c)); } \
    GRADER_INLINE T2 __hfma2(T2 a, T2 b, T2 c) { return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }      \
    GRADER_INLINE T __hmax(T a, T b) { return T(::fmaxf((float)a, (float)b)); }                                  \
    GRADER_INLINE T __hmin(T a, T b) { return T(::fminf((float)a, (float)b)); }                                  \
    GRADER_INLINE T2 __hmax2(T2 a, T2 b) { return T2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }                      \
    GRADER_INLINE T2 __hmin2(T2 a, T2 b) { return T2(__hmin(a.x, b.x), __hmin(a.y, b.y)); }                      \
    GRADER_INLINE bool __hisnan(T a) { return (float)a != (float)a; }                                            \
    GRADER_INLINE int __hisinf(T a) { return ::fabsf((float)a) == INFINITY ? ((float)a > 0 ? 1 : -1) : 0; }      \
    GRADER_SMALL_FUNCTION(T, T2, exp, ::expf)                                                                    \
    GRADER_SMALL_FUNCTION(T, T2, exp2, ::exp2f)                                                                  \
    GRADER_SMALL_FUNCTION(T, T2, log, ::logf)                                                                    \
    GRADER_SMALL_FUNCTION(T, T2, log2, ::log2f)                                                                  \
    GRADER_SMALL_FUNCTION(T, T2, log10, ::log10f)                                                                \
    GRADER_SMALL_FUNCTION(T, T2, sqrt, ::sqrtf)                                                                  \
    GRADER_SMALL_FUNCTION(T, T2, rsqrt, ::rsqrtf)                                                                \
    GRADER_SMALL_FUNCTION(T, T2, rcp, ::__frcp_rn)                                                               \
    GRADER_SMALL_FUNCTION(T, T2, sin, ::sinf)                                                                    \
    GRADER_SMALL_FUNCTION(T, T2, cos, ::cosf)                                                                    \
    GRADER_SMALL_FUNCTION(T, T2, tanh, ::tanhf)                                                                  \
    GRADER_SMALL_FUNCTION(T, T2, floor, ::floorf)                                                                \
    GRADER_SMALL_FUNCTION(T, T2, ceil, ::ceilf)                                                                  \
    GRADER_SMALL_FUNCTION(T, T2, trunc, ::truncf)                                                                \
    GRADER_SMALL_FUNCTION(T, T2, rint, ::rintf)                                                                  \
    GRADER_INLINE float __low2float(T2 a) { return (float)a.x; }                                                 \
    GRADER_INLINE float __high2float(T2 a) { return (float)a.y; }                                                \
    GRADER_INLINE T2 __hadd2_rn(T2 a, T2 b) { return a + b; }                                                    \
    inline T atomicAdd(T* address, T value) {                                                                    \
        const unsigned short old = grader_rt::atomic_change(&address->__x, [value](unsigned short bits) {        \
            return (T(raw{bits}) + value).__x;                                                                   \
        });                                                                                                      \
        return T(raw{old});                                                                                      \
    }                                                                                                            \
    inline T2 atomicAdd(T2* address, T2 value) {                                                                 \
        return T2(atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y));                             \
    }

#define GRADER_SMALL_OPERATOR(T, T2, symbol, name)                                                              \
    GRADER_INLINE T operator symbol(const T& a, const T& b) { return T((float)a symbol (float)b); }             \
    GRADER_INLINE T2 operator symbol(const T2& a, const T2& b) { return T2(a.x symbol b.x, a.y symbol b.y); }   \
    GRADER_INLINE T& operator symbol##=(T& a, const T& b) { return a = a symbol b; }                            \
    GRADER_INLINE T2& operator symbol##=(T2& a, const T2& b) { return a = a symbol b; }                         \
    GRADER_INLINE T __##name(T a, T b) { return a symbol b; }                                                   \
    GRADER_INLINE T __##name##_rn(T a, T b) { return a symbol b; }                                              \
    GRADER_INLINE T2 __##name##2(T2 a, T2 b) { return a symbol b; }                                             \
    GRADER_INLINE T __##name##_sat(T a, T b) { return T(::__saturatef((float)a symbol (float)b)); }

#define GRADER_SMALL_COMPARE(T, T2, symbol, name)                                                               \
    GRADER_INLINE bool operator symbol(const T& a, const T& b) { return (float)a symbol (float)b; }             \
    GRADER_INLINE bool __##name(T a, T b) { return (float)a symbol (float)b; }                                  \
    GRADER_INLINE T2 __##name##2(T2 a, T2 b) { return T2(T((float)__##name(a.x, b.x)), T((float)__##name(a.y, b.y))); } \
    GRADER_INLINE bool __hb##name(T2 a, T2 b) { return __##name(a.x, b.x) && __##name(a.y, b.y); }

#define GRADER_SMALL_FUNCTION(T, T2, name, function)                                    \
    GRADER_INLINE T h##name(T a) { return T(function((float)a)); }                      \
    GRADER_INLINE T2 h2##name(T2 a) { return T2(h##name(a.x), h##name(a.y)); }
