// bfloat16.
#pragma once

#include "grader_rt/small_floats.h"

GRADER_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw, float_to_bfloat16_bits, bfloat16_bits_to_float)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

GRADER_INLINE __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
GRADER_INLINE __nv_bfloat16 __float2bfloat16_rn(float value) { return __nv_bfloat16(value); }
GRADER_INLINE __nv_bfloat16 __double2bfloat16(double value) { return __nv_bfloat16(value); }
GRADER_INLINE float __bfloat162float(__nv_bfloat16 value) { return value; }
GRADER_INLINE __nv_bfloat162 __float2bfloat162_rn(float value) {
    return __nv_bfloat162(__nv_bfloat16(value), __nv_bfloat16(value));
}
GRADER_INLINE __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b));
}
GRADER_INLINE __nv_bfloat162 __float22bfloat162_rn(float2 value) {
    return __nv_bfloat162(__nv_bfloat16(value.x), __nv_bfloat16(value.y));
}
GRADER_INLINE float2 __bfloat1622float2(__nv_bfloat162 value) { return make_float2(value.x, value.y); }
GRADER_INLINE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return __nv_bfloat162(value, value); }
GRADER_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
GRADER_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
GRADER_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 value) { return value.x; }
GRADER_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 value) { return value.y; }
GRADER_INLINE __nv_bfloat16 __int2bfloat16_rn(int value) { return __nv_bfloat16(value); }
GRADER_INLINE int __bfloat162int_rn(__nv_bfloat16 value) { return __float2int_rn(value); }
GRADER_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.__x; }
GRADER_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16(__nv_bfloat16_raw{bits}); }

#define CUDART_INF_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7F80U))
#define CUDART_NAN_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7FFFU))
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0000U))
#define CUDART_ONE_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x3F80U))
