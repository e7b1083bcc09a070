// make_float4() and its family.
#pragma once

#include "vector_types.h"

#define GRADER_MAKE(base, type)                                                                       \
    static GRADER_INLINE constexpr base##1 make_##base##1(type x) { return base##1{x}; }              \
    static GRADER_INLINE constexpr base##2 make_##base##2(type x, type y) { return base##2{x, y}; }   \
    static GRADER_INLINE constexpr base##3 make_##base##3(type x, type y, type z) {                   \
        return base##3{x, y, z};                                                                      \
    }                                                                                                 \
    static GRADER_INLINE constexpr base##4 make_##base##4(type x, type y, type z, type w) {           \
        return base##4{x, y, z, w};                                                                   \
    }

GRADER_MAKE(char, signed char)
GRADER_MAKE(uchar, unsigned char)
GRADER_MAKE(short, short)
GRADER_MAKE(ushort, unsigned short)
GRADER_MAKE(int, int)
GRADER_MAKE(uint, unsigned int)
GRADER_MAKE(long, long)
GRADER_MAKE(ulong, unsigned long)
GRADER_MAKE(longlong, long long)
GRADER_MAKE(ulonglong, unsigned long long)
GRADER_MAKE(float, float)
GRADER_MAKE(double, double)

#undef GRADER_MAKE
