"""The CUDA-on-CPU runtime runs kernels as a GPU would, and ends every bad one with its name.

Each kernel is compiled with the product's own flags and run in a child process, so that a crash is seen as
the grader sees it: an exit code and a file of events.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from grader import emulator
from grader.emulator import rewrite, symbols, toolchain

DRIVER = """
import ctypes, json, os, sys
library = ctypes.CDLL(sys.argv[1])
workers, schedule, seconds, events = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
library.grader_rt_begin.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_double, ctypes.c_int]
library.grader_rt_alloc.restype = ctypes.c_void_p
library.grader_rt_alloc.argtypes = [ctypes.c_size_t, ctypes.c_char_p]
library.grader_rt_redzones_ok.argtypes = [ctypes.c_void_p]
library.entry.argtypes = [ctypes.c_void_p, ctypes.c_int]
class Stats(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in
                ("size", "launches", "peak", "live", "d2h", "h2d", "syncs")] + [("seconds", ctypes.c_double)]
fd = os.open(events, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
library.grader_rt_begin(fd, workers, seconds, schedule)
n = int(sys.argv[6])
out = library.grader_rt_alloc(4 * n, b"out")
returned = library.entry(out, n)
stats = Stats(size=ctypes.sizeof(Stats))
library.grader_rt_stats(ctypes.byref(stats))
name, text = ctypes.create_string_buffer(128), ctypes.create_string_buffer(256)
error = library.grader_rt_sync_error(name, 128, text, 256)
launches = ctypes.create_string_buffer(65536)
library.grader_rt_launches(launches, 65536)
print(json.dumps({
    "returned": returned, "error": error, "name": name.value.decode(), "text": text.value.decode(),
    "values": list((ctypes.c_float * n).from_address(out)), "redzones": library.grader_rt_redzones_ok(out),
    "launches": json.loads(launches.value), "live": stats.live, "peak": stats.peak, "d2h": stats.d2h,
}))
library.grader_rt_end()
"""


@dataclass
class Ran:
    """What one call of `entry(out, n)` did."""

    code: int
    answer: dict[str, Any]
    events: list[dict[str, Any]]
    library: Path
    printed: str = field(default="")

    def event(self, kind: str) -> dict[str, Any]:
        """Return the first event of a kind; the test fails if there is none."""
        return next(event for event in self.events if event["kind"] == kind)

    def line(self, event: dict[str, Any], key: str = "pc") -> int:
        """Return the line of an event in the kernel's source."""
        return symbols.locate(self.library, [int(event[key], 16)], "kernel.cu")[int(event[key], 16)].line


class Bench:
    """Builds sources with one compiler and calls them."""

    def __init__(self, compiler: toolchain.Toolchain, folder: Path) -> None:
        self.toolchain = compiler
        self.folder = folder
        self.runtime = folder / "runtime.o"
        flags = emulator.runtime_flags("fast", compiler.family)
        self._compile([*flags, *map(str, emulator.SOURCES), "-o", str(self.runtime)])
        self.built = 0

    def _compile(self, arguments: list[str]) -> str:
        done = subprocess.run([self.toolchain.path, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def build(self, source: str) -> tuple[Path, str]:
        """Compile a student's text; returns the library and what the compiler said."""
        self.built += 1
        folder = self.folder / str(self.built)
        folder.mkdir()
        (folder / "kernel.cu").write_text(rewrite.rewrite(source).text)
        library = folder / "kernel.so"
        flags = emulator.compile_flags("fast", self.toolchain.family)
        said = self._compile(
            [
                *flags,
                "-x",
                "c++",
                str(folder / "kernel.cu"),
                "-x",
                "none",
                str(self.runtime),
                "-shared",
                "-pthread",
                "-ldl",
                "-o",
                str(library),
            ]
        )
        return library, said

    def run(
        self, source: str | Path, n: int = 64, *, workers: int = 2, schedule: int = 0, seconds: float = 5.0
    ) -> Ran:
        """Call `entry(float* out, int n)` of a source or of a library."""
        library = source if isinstance(source, Path) else self.build(source)[0]
        events = library.with_suffix(f".{workers}.{schedule}.events")
        events.unlink(missing_ok=True)
        command = [sys.executable, "-I", "-S", "-c", DRIVER, str(library)]
        command += [str(workers), str(schedule), str(seconds), str(events), str(n)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        lines = done.stdout.splitlines()
        answer = json.loads(lines[-1]) if done.returncode == 0 else {}
        told = [json.loads(line) for line in events.read_text().splitlines()]
        return Ran(done.returncode, answer, told, library, done.stdout + done.stderr)


@pytest.fixture(scope="module", params=["g++", "clang++"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Both compilers, the runtime built once for each."""
    path = shutil.which(request.param)
    if path is None:
        pytest.skip(f"no {request.param} here")
    compiler = toolchain.Toolchain(path, request.param, "", "")
    return Bench(compiler, tmp_path_factory.mktemp(request.param.strip("+")))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The compiler that the product takes: what the runtime says of a fault hardly depends on it."""
    compiler = toolchain.find()
    assert compiler is not None
    return Bench(compiler, tmp_path_factory.mktemp("one"))


def program(kernel: str, launch: str = "k<<<1, 64>>>(out, n);", before: str = "") -> str:
    """Make a file of one kernel, whose body is `kernel`, and an entry that launches it.

    The body's first line is line 5.
    """
    return (
        f"#include <cstdio>\n#include <cassert>\n{before}\n"
        f"__global__ void k(float* out, int n) {{\n{kernel}\n}}\n"
        f'extern "C" __attribute__((visibility("default"))) int entry(float* out, int n) {{\n{launch}\n'
        "return cudaDeviceSynchronize();\n}\n"
    )


# --- kernels that are right ----------------------------------------------------------------------

REDUCTIONS = """
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = t; __syncthreads();
  for (int o = 32; o > 0; o >>= 1) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
  float v = t % 32;
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  float down = t % 32;
  for (int o = 16; o > 0; o >>= 1) down += __shfl_down_sync(0xffffffff, down, o);
  float first = __shfl_sync(0xffffffff, down, 0);
  int up = __shfl_up_sync(0xffffffff, t, 1);
  float half = 1;
  for (int o = 8; o > 0; o >>= 1) half += __shfl_xor_sync(t % 32 < 16 ? 0xffff : 0xffff0000, half, o);
  unsigned votes = __ballot_sync(0xffffffff, t % 2);
  int count = __syncthreads_count(t < 10), all = __syncthreads_and(t < 64), any = __syncthreads_or(t == 99);
  int sum = __reduce_add_sync(0xffffffff, t % 32);
  unsigned alike = __match_any_sync(0xffffffff, t % 4);
  bool ok = s[0] == 2016 && v == 496 && first == 496 && up == (t % 32 ? t - 1 : t) && half == 16
      && votes == 0xaaaaaaaa && count == 10 && all == 1 && any == 0 && sum == 496
      && alike == 0x11111111u << t % 4 && __any_sync(0xffffffff, t == 5) == (t < 32)
      && __all_sync(0xffffffff, 1);
  if (t % 32 < 7) ok = ok && __activemask() == 0x7f;
  out[t] = ok;
"""


@pytest.mark.parametrize("schedule", [0, 1, 2, 12345])
def test_barriers_shuffles_votes_and_reductions_agree_with_cuda_in_every_order(
    bench: Bench, schedule: int
) -> None:
    """Whatever the order of threads, warps and blocks."""
    ran = bench.run(program(REDUCTIONS), schedule=schedule)
    assert not ran.events
    assert (ran.code, ran.answer["error"]) == (0, 0)
    assert ran.answer["values"] == [1.0] * 64


def test_every_block_runs_once_in_every_order(bench: Bench) -> None:
    """Blocks are spread over threads and permuted; none is lost or run twice."""
    source = program(
        "atomicAdd(&out[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x], 1.0f);",
        "cudaMemset(out, 0, n * 4); k<<<dim3(7, 5, 3), dim3(4, 2, 3)>>>(out, n);",
    )
    library, _ = bench.build(source)
    for schedule in (0, 1, 2, 3, 77):
        ran = bench.run(library, 105, schedule=schedule)
        assert ran.answer["values"] == [24.0] * 105


def test_a_warp_with_fewer_than_32_threads_takes_the_full_mask(bench: Bench) -> None:
    """Lanes that do not exist hold nobody up."""
    body = (
        "float v = 1; for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o) > 0 ? 1 : 0; __syncwarp();"
    )
    ran = bench.run(program(body + "out[threadIdx.x] = threadIdx.x;", "k<<<1, 41>>>(out, n);"), 41)
    assert ran.code == 0
    assert ran.answer["values"] == list(range(41))
    assert not ran.events


def test_a_lane_that_spins_on_a_lock_lets_its_holder_run(bench: Bench) -> None:
    """As independent thread scheduling does since Volta."""
    body = """while (atomicCAS(&lock, 0, 1) != 0) { }
      float v = out[0]; __nanosleep(1); out[0] = v + 1; __threadfence(); atomicExch(&lock, 0);"""
    ran = bench.run(program(body, "cudaMemset(out, 0, 4); k<<<1, 64>>>(out, n);", "__device__ int lock;"), 1)
    assert ran.answer["values"] == [64.0]


def test_templates_namespaces_null_and_dynamic_shared_memory(bench: Bench) -> None:
    """Both forms of a launch, and `extern __shared__` inside and outside of a function."""
    source = """
extern __shared__ __align__(16) char raw[];
namespace mine { template <class T, int D> __global__ void k(T* out, int n) {
  extern __shared__ float inside[];
  float* s = reinterpret_cast<float*>(raw);
  s[threadIdx.x] = D; __syncthreads();
  if (threadIdx.x < n) out[threadIdx.x] = inside[threadIdx.x ^ 1];
} }
__global__ void plain(float* out, const float* nothing, unsigned n) { if (!nothing) out[threadIdx.x] += n; }
extern "C" __attribute__((visibility("default"))) int entry(float* out, int n) {
  cudaStream_t stream; cudaStreamCreate(&stream);
  cudaFuncSetAttribute(mine::k<float, 3>, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
  mine::k<float, 3><<<1, 64, 100000, stream>>>(out, n);
  plain<<<1, n>>>(out, NULL, 2);
  cudaStreamDestroy(stream);
  return cudaGetLastError();
}
"""
    ran = bench.run(source)
    assert ran.answer["returned"] == 0, ran
    assert ran.answer["values"] == [5.0] * 64
    assert ran.answer["launches"][0]["shared_dynamic"] == 100000


def test_symbols_events_streams_and_copies(bench: Bench) -> None:
    """The host API that ordinary programs use."""
    launch = """
  float h[4] = {1, 2, 3, 4}, back[4] = {};
  cudaMemcpyToSymbol(table, h, sizeof h);
  cudaEvent_t a, b; cudaEventCreate(&a); cudaEventCreate(&b); cudaEventRecord(a);
  k<<<1, 4>>>(out, n);
  cudaEventRecord(b); cudaEventSynchronize(b); float ms = -1; cudaEventElapsedTime(&ms, a, b);
  cudaMemcpyFromSymbol(back, seen, sizeof back);
  float* m; cudaMallocManaged(&m, 16); m[0] = back[3]; cudaFree(m);
  cudaDeviceProp p; cudaGetDeviceProperties(&p, 0);
  if (ms < 0 || back[3] != 8 || p.warpSize != 32 || p.sharedMemPerBlockOptin != 232448) return -1;
"""
    before = "__constant__ float table[4]; __device__ float seen[4];"
    body = "seen[threadIdx.x] = 2 * table[threadIdx.x]; out[threadIdx.x] = __ldg(&table[threadIdx.x]);"
    ran = bench.run(program(body, launch, before), 4)
    assert ran.answer["returned"] == 0, ran
    assert ran.answer["values"] == [1, 2, 3, 4]
    assert ran.answer["live"] == 0
    assert ran.answer["peak"] == 16
    assert not ran.events


def test_fmaxf_ignores_nan_and_fast_intrinsics_are_close(bench: Bench) -> None:
    """maxNum of IEEE 754, as on the device."""
    body = """float nan = __int_as_float(0x7fffffff); int i = threadIdx.x; if (i) return;
      out[0] = fmaxf(nan, 1.0f) + fmaxf(2.0f, nan) + fminf(nan, 4.0f) + max(8.0f, nan);
      out[1] = __expf(1.0f); out[2] = rsqrtf(4.0f); out[3] = __saturatef(7.0f); out[4] = __frcp_rn(4.0f);
      out[5] = max(-1, 3u) == 0xffffffffu; out[6] = __popc(255) + __clz(1) + __ffs(8);
      out[7] = exp2f(3.0f);"""
    values = bench.run(program(body), 8).answer["values"]
    assert values[0] == 15
    assert values[2:] == [0.5, 1.0, 0.25, 1.0, 8 + 31 + 4, 8.0]
    assert abs(values[1] - 2.7182817) < 1e-6


def test_cublas_multiplies(bench: Bench) -> None:
    """Column-major, with a transposed operand, and batched."""
    source = """
#include <cublas_v2.h>
extern "C" __attribute__((visibility("default"))) int entry(float* out, int n) {
  float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, *da, *db, one = 1, zero = 0;
  cudaMalloc(&da, 24); cudaMalloc(&db, 24);
  cudaMemcpy(da, a, 24, cudaMemcpyHostToDevice); cudaMemcpy(db, b, 24, cudaMemcpyHostToDevice);
  cublasHandle_t handle; cublasCreate(&handle);
  int status = cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 3, &one, da, 3, db, 3, &zero, out, 2);
  status += cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, 1, &one, da, 2, 2, db, 2, 2,
                                      &zero, out + 4, 2, 4, 2);
  cublasDestroy(handle); cudaFree(da); cudaFree(db);
  return status;
}
"""
    ran = bench.run(source, 12)
    assert ran.answer["returned"] == 0
    assert ran.answer["values"] == [1, 4, 6, 15, 1, 2, 0, 0, 0, 0, 3, 4]


def test_a_typical_file_compiles_without_a_warning(bench: Bench) -> None:
    """Noise about a correct file would frighten a student."""
    _, said = bench.build(program(REDUCTIONS, "dim3 blockDim(8, 8); k<<<1, blockDim>>>(out, n);"))
    assert said == ""


SMALL_TYPES = """
#include <cstdio>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;
using namespace nvcuda;
__global__ void k(float* out, float4* sevens) {
  __shared__ half a[16][16], b[16][16];
  __shared__ float c[16][16];
  __shared__ float4 copied[32];
  int t = threadIdx.x;
  for (int i = t; i < 256; i += 32) {
    a[i / 16][i % 16] = __float2half((i / 16) * 0.5f + i % 16);
    b[i / 16][i % 16] = __float2half((float)(i / 16 - i % 16));
  }
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 1.0f);
  wmma::load_matrix_sync(fa, &a[0][0], 16);
  wmma::load_matrix_sync(fb, &b[0][0], 16);
  wmma::mma_sync(fc, fa, fb, fc);
  for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 2;
  wmma::store_matrix_sync(&c[0][0], fc, 16, wmma::mem_row_major);
  __syncwarp();
  bool product = true;
  for (int i = t; i < 256; i += 32) {
    float sum = 1;
    for (int q = 0; q < 16; q++) sum += ((i / 16) * 0.5f + q) * (float)(i % 16 - q);
    product = product && c[i / 16][i % 16] == 2 * sum;
  }
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  bool groups = cg::reduce(tile, t, cg::plus<int>()) == 8 * (t / 8 * 8) + 28;
  if (t % 3 == 0) {
    auto together = cg::coalesced_threads();
    groups = groups && together.size() == 11 && together.thread_rank() == t / 3;
  }
  half2 h = __floats2half2_rn(1.5f, 2.5f);
  h = __hfma2(h, h, h);
  bool halves = __low2float(h) == 3.75f && __high2float(h) == 8.75f
      && __half2float(__float2half(65520.f)) == INFINITY && __half2float(__float2half(65519.f)) == 65504.f
      && __half2float(__float2half(5.9604645e-8f)) == 5.9604645e-8f
      && __half2float(__float2half(2.9802322e-8f)) == 0.0f
      && __bfloat162float(__float2bfloat16(1.00390625f)) == 1.0f
      && (float)__shfl_xor_sync(0xffffffff, __float2half((float)t), 1) == (float)(t ^ 1);
  __pipeline_memcpy_async(&copied[t], &sevens[t], 16);
  __pipeline_commit();
  bool late = copied[t].x != 7;
  __pipeline_wait_prior(0);
  __syncthreads();
  out[t] = product + 2 * groups + 4 * halves + 8 * (late && copied[t ^ 1].y == 7);
}
extern "C" __attribute__((visibility("default"))) int entry(float* out, int n) {
  float4* sevens;
  float host[128];
  for (float& one : host) one = 7;
  cudaMalloc(&sevens, sizeof host);
  cudaMemcpy(sevens, host, sizeof host, cudaMemcpyHostToDevice);
  k<<<1, 32>>>(out, sevens);
  cudaFree(sevens);
  return cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize("schedule", [0, 1, 5])
def test_half_bfloat16_wmma_groups_and_asynchronous_copies(bench: Bench, schedule: int) -> None:
    """Four bits: the product of a warp, cooperative groups, roundings, a copy that is not there too early."""
    ran = bench.run(SMALL_TYPES, 32, schedule=schedule)
    assert not ran.events
    assert ran.answer["values"] == [15.0] * 32


def test_exp_is_within_one_unit_in_the_last_place(bench: Bench) -> None:
    """Our own expf, over its whole range; CUDA's is within two."""
    body = """float x = -104.5f + 0.19375f * (blockIdx.x * 64 + threadIdx.x);
      double want = ::exp((double)x); float got = __expf(x), near = (float)want;
      float unit = near < 1.2e-38f ? 1.4e-45f : near * 1.2e-7f;
      bool ok = isinf(near) ? isinf(got) : ::fabs(got - want) <= unit;
      if (!ok) atomicAdd(out, 1.0f);"""
    ran = bench.run(program(body, "cudaMemset(out, 0, n * 4); k<<<16, 64>>>(out, n);"), 1)
    assert ran.answer["values"] == [0.0]


# --- kernels that are wrong ----------------------------------------------------------------------


def test_a_write_far_past_the_end_names_the_buffer_the_thread_and_the_line(one: Bench) -> None:
    """An access outside of every page of the buffer faults, as on a GPU."""
    ran = one.run(
        program("\nif (threadIdx.x == 5)\n  out[n + 1000] = 1;", "k<<<3, 64>>>(out, n);"), workers=1
    )
    event = ran.event("illegal_access")
    assert "writes" in event["message"]
    assert "past the end of out (256 bytes)" in event["message"]
    assert event["block"] == [0, 0, 0]
    assert event["thread"] == [5, 0, 0]
    assert event["kernel"] == "k"
    assert ran.line(event) == 7
    assert ran.code == 0
    assert ran.answer["name"] == "cudaErrorIllegalAddress"
    assert ran.answer["returned"] == 700


def test_a_small_overrun_breaks_the_red_zone(one: Bench) -> None:
    """The slack up to the page's end is watched."""
    assert one.run(program("out[n] = 1;"), 50).answer["redzones"] == 0
    assert one.run(program("out[n - 1] = 1;"), 50).answer["redzones"] == 1


def test_errors_stay_until_read_and_faults_stay_for_ever(one: Bench) -> None:
    """A refused launch is forgotten when it is read; after a fault every call fails."""
    launch = """
  k<<<1, 2000>>>(out, n);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  if (cudaPeekAtLastError() != cudaErrorInvalidConfiguration) return 1;
  if (cudaGetLastError() != cudaErrorInvalidConfiguration || cudaGetLastError() != cudaSuccess) return 2;
  k<<<1, 1>>>(nullptr, n);
  void* p; cudaGetLastError();
  if (cudaMalloc(&p, 4) != cudaErrorIllegalAddress || cudaGetLastError() != cudaErrorIllegalAddress) return 3;
"""
    ran = one.run(program("out[0] = 1;", launch))
    assert ran.answer["returned"] == 700
    assert "1024 threads" in ran.event("launch_failed")["message"]
    assert "null pointer" in ran.event("illegal_access")["message"]


@pytest.mark.parametrize(
    ("launch", "error"),
    [
        ("k<<<0, 32>>>(out, n);", "cudaErrorInvalidConfiguration"),
        ("k<<<1, dim3(1, 1, 65)>>>(out, n);", "cudaErrorInvalidConfiguration"),
        ("k<<<dim3(1, 65536), 1>>>(out, n);", "cudaErrorInvalidConfiguration"),
        ("k<<<1, 32, 49153>>>(out, n);", "cudaErrorInvalidValue"),
        (
            "cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 232449);",
            "cudaErrorInvalidValue",
        ),
    ],
)
def test_limits_are_those_of_the_hardware(one: Bench, launch: str, error: str) -> None:
    """The kernel does not run, and the error is CUDA's."""
    ran = one.run(program("out[0] = 1;", launch))
    assert ran.answer["name"] == error
    assert ran.answer["values"][0] != 1


def test_static_shared_memory_above_48_kb_is_known_when_the_library_is_loaded(one: Bench) -> None:
    """nvcc refuses it, so the build must."""
    library, _ = one.build(program("__shared__ float a[100][64], b[100][64]; a[0][0] = b[n][n] = 1;"))
    code = (
        "import ctypes,sys; b=ctypes.create_string_buffer(4096);"
        "ctypes.CDLL(sys.argv[1]).grader_rt_static_shared(b,ctypes.c_size_t(4096));print(b.value.decode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(library)], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [{"kernel": "k", "bytes": 51200, "line": 5}]


def test_a_divergent_barrier_says_who_waits_where(one: Bench) -> None:
    """Never a hang."""
    body = "if (threadIdx.x < 40)\n  __syncthreads();\nelse\n  __shfl_sync(0xffffffff, n, 0);"
    ran = one.run(program(body))
    event = ran.event("barrier")
    assert "40 wait in __syncthreads() at {pc}" in event["message"]
    assert "24 wait" in event["message"]
    assert ran.line(event) == 6
    assert ran.line(event, "other_pc") == 8
    assert ran.answer["name"] == "cudaErrorLaunchTimeout"


def test_a_thread_that_returned_counts_as_arrived_and_is_warned_about(one: Bench) -> None:
    """As on hardware since Volta."""
    ran = one.run(program("if (threadIdx.x >= 50) return;\n__syncthreads();\nout[threadIdx.x] = 1;"))
    event = ran.event("exited_before_barrier")
    assert event["severity"] == "warning"
    assert "14 of 64" in event["message"]
    assert ran.line(event) == 6
    assert ran.answer["error"] == 0
    assert ran.answer["values"][:50] == [1.0] * 50


@pytest.mark.parametrize(
    "body",
    [
        "volatile int stop = 0;\nif (blockIdx.x == 3) while (!stop) { }",
        "volatile int stop = 0;\nif (threadIdx.x == 3) while (!stop) { } __syncthreads();",
        "if (threadIdx.x == 3)\n while (true) __syncwarp(8);",
    ],
)
def test_an_endless_kernel_ends(one: Bench, body: str) -> None:
    """With its line; other blocks may have run."""
    ran = one.run(program(body, "k<<<8, 64>>>(out, n);"), seconds=0.3)
    event = ran.event("hang")
    assert event["thread"] is not None
    assert ran.code == 0
    assert ran.answer["name"] == "cudaErrorLaunchTimeout"


@pytest.mark.parametrize(
    ("body", "kind", "error", "words"),
    [
        ("assert(n < 0);", "assert", "cudaErrorAssert", "assert(n < 0) failed at line 5"),
        ("if (threadIdx.x == 63) __trap();", "trap", "cudaErrorLaunchFailure", "__trap()"),
        ("throw 1;", "trap", "cudaErrorLaunchFailure", "exception"),
        ("out[0] = n / (n - 64);", "trap", "cudaErrorLaunchFailure", "division by zero"),
        (
            "struct R { static int f(int i) {"
            " volatile char b[999]; b[0] = 1; return i ? f(i + 1) + b[0] : 0; } }; out[0] = R::f(1);",
            "stack_overflow",
            "cudaErrorHardwareStackError",
            "stack overflowed",
        ),
        ("out[0] = *(int*)0x7123456789abcdef;", "illegal_access", "cudaErrorIllegalAddress", "cannot exist"),
        (
            "extern __shared__ float s[]; s[threadIdx.x + 999] = 1;",
            "illegal_access",
            "cudaErrorIllegalAddress",
            "dynamic shared memory (the launch asked for 0 bytes)",
        ),
    ],
)
def test_a_kernel_that_fails_names_its_failure(
    one: Bench, body: str, kind: str, error: str, words: str
) -> None:
    """One event, CUDA's own error, and host code goes on."""
    ran = one.run(program(body))
    assert words in ran.event(kind)["message"], ran.events
    assert ran.code == 0
    assert ran.answer["name"] == error


def test_a_host_pointer_in_a_kernel_faults_as_on_a_gpu(one: Bench) -> None:
    """On a CPU it would silently work."""
    ran = one.run(program("out[0] = 1;", "float h[4]; k<<<1, 32>>>(h, n);"))
    assert "argument 1 of k is a host pointer" in ran.event("illegal_access")["message"]


def test_memory_that_was_freed_cannot_be_used(one: Bench) -> None:
    """Neither by a kernel, nor by a copy, nor freed again."""
    launch = """
  float *p, h; cudaMalloc(&p, 400); cudaFree(p);
  if (cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost) != cudaErrorInvalidValue) return 1;
  if (cudaFree(p) != cudaErrorInvalidValue) return 2;
  k<<<1, 32>>>(p, n);
"""
    ran = one.run(program("out[0] = 1;", launch))
    assert ran.answer["returned"] == 700
    assert "which was freed" in ran.event("illegal_access")["message"]
    assert "was freed before" in ran.event("bad_free")["message"]


@pytest.mark.parametrize(
    ("copy", "words"),
    [
        ("cudaMemcpy(out, h, 4096, cudaMemcpyHostToDevice)", "has only 256"),
        ("cudaMemcpy(out, h, 4, cudaMemcpyDeviceToDevice)", "source is a host pointer"),
        ("cudaMemcpy(h, out, 4, cudaMemcpyHostToDevice)", "destination is a host pointer"),
        ("cudaMemset(h, 0, 4)", "host pointer"),
    ],
)
def test_a_copy_that_cuda_refuses_is_refused(one: Bench, copy: str, words: str) -> None:
    """With the reason that CUDA does not give."""
    ran = one.run(program("", f"float h[4] = {{}}; return {copy};"))
    assert ran.answer["returned"] == 1
    assert words in ran.event("bad_copy")["message"]


def test_a_crash_of_host_code_is_told_and_ends_the_process_with_120(one: Bench) -> None:
    """The runner sees the code, the report the event; what was printed before is not lost."""
    ran = one.run(program("", 'printf("before\\n"); *(volatile int*)8 = 1;'))
    assert ran.code == 120
    assert "null pointer" in ran.event("crash")["message"]
    assert "before" in ran.printed


def test_what_a_kernel_prints_arrives(one: Bench) -> None:
    """Through the C library's own printf."""
    ran = one.run(program('if (threadIdx.x == 1) printf("N=%d %.2f\\n", n, 0.5);'))
    assert "N=64 0.50" in ran.printed


def test_unwritten_memory_is_nan(one: Bench) -> None:
    """Global and shared memory that nobody wrote shows."""
    ran = one.run(program("__shared__ float s[64]; out[threadIdx.x] = s[threadIdx.x];"))
    assert all(value != value for value in ran.answer["values"])
