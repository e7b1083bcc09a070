// half precision.
#pragma once

#include "grader_rt/small_floats.h"

GRADER_SMALL_FLOAT(__half, __half2, __half_raw, float_to_half_bits, half_bits_to_float)
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;

GRADER_INLINE __half __float2half(float value) { return __half(value); }
GRADER_INLINE __half __float2half_rn(float value) { return __half(value); }
GRADER_INLINE __half __double2half(double value) { return __half(value); }
GRADER_INLINE float __half2float(__half value) { return value; }
GRADER_INLINE __half2 __float2half2_rn(float value) { return __half2(__half(value), __half(value)); }
GRADER_INLINE __half2 __floats2half2_rn(float a, float b) { return __half2(__half(a), __half(b)); }
GRADER_INLINE __half2 __float22half2_rn(float2 value) { return __half2(__half(value.x), __half(value.y)); }
GRADER_INLINE float2 __half22float2(__half2 value) { return make_float2(value.x, value.y); }
GRADER_INLINE __half2 __half2half2(__half value) { return __half2(value, value); }
GRADER_INLINE __half2 __halves2half2(__half a, __half b) { return __half2(a, b); }
GRADER_INLINE __half2 make_half2(__half a, __half b) { return __half2(a, b); }
GRADER_INLINE __half __low2half(__half2 value) { return value.x; }
GRADER_INLINE __half __high2half(__half2 value) { return value.y; }
GRADER_INLINE __half2 __low2half2(__half2 value) { return __half2(value.x, value.x); }
GRADER_INLINE __half2 __high2half2(__half2 value) { return __half2(value.y, value.y); }
GRADER_INLINE __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
GRADER_INLINE __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
GRADER_INLINE __half2 __lowhigh2highlow(__half2 value) { return __half2(value.y, value.x); }
GRADER_INLINE __half __int2half_rn(int value) { return __half(value); }
GRADER_INLINE __half __uint2half_rn(unsigned int value) { return __half(value); }
GRADER_INLINE int __half2int_rn(__half value) { return __float2int_rn(value); }
GRADER_INLINE int __half2int_rz(__half value) { return __float2int_rz(value); }
GRADER_INLINE unsigned short __half_as_ushort(__half value) { return value.__x; }
GRADER_INLINE short __half_as_short(__half value) { return static_cast<short>(value.__x); }
GRADER_INLINE __half __ushort_as_half(unsigned short bits) { return __half(__half_raw{bits}); }
GRADER_INLINE __half __short_as_half(short bits) { return __half(__half_raw{static_cast<unsigned short>(bits)}); }

#define CUDART_INF_FP16 __ushort_as_half(static_cast<unsigned short>(0x7C00U))
#define CUDART_NAN_FP16 __ushort_as_half(static_cast<unsigned short>(0x7FFFU))
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(static_cast<unsigned short>(0x7BFFU))
#define CUDART_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x0000U))
#define CUDART_ONE_FP16 __ushort_as_half(static_cast<unsigned short>(0x3C00U))
