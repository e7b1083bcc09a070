// CUDA's vector types: plain aggregates, aligned as on the device. No operators, as in CUDA.
#pragma once

#include "grader_rt/host_defines.h"

#define GRADER_VECTOR(base, type, align2, align4)            \
    struct base##1 { type x; };                              \
    struct alignas(align2) base##2 { type x, y; };           \
    struct base##3 { type x, y, z; };                        \
    struct alignas(align4) base##4 { type x, y, z, w; };

GRADER_VECTOR(char, signed char, 2, 4)
GRADER_VECTOR(uchar, unsigned char, 2, 4)
GRADER_VECTOR(short, short, 4, 8)
GRADER_VECTOR(ushort, unsigned short, 4, 8)
GRADER_VECTOR(int, int, 8, 16)
GRADER_VECTOR(uint, unsigned int, 8, 16)
GRADER_VECTOR(long, long, 16, 16)
GRADER_VECTOR(ulong, unsigned long, 16, 16)
GRADER_VECTOR(longlong, long long, 16, 16)
GRADER_VECTOR(ulonglong, unsigned long long, 16, 16)
GRADER_VECTOR(float, float, 8, 16)
GRADER_VECTOR(double, double, 16, 16)

#undef GRADER_VECTOR

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};
