"""Faults to plant in correct kernels (`tests/faults/*.cu`): what to edit, and what must be said, where.

A line is named by its marker, `// @name`. A fault is caught when an event of its kind names that line.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A small edit of a correct kernel. `kind` and `line`: the event to come, and its line's marker."""

    base: str
    name: str
    find: str
    replace: str
    kind: str
    line: str
    N: int = 41
    d: int = 32
    only: str = ""  # the one compiler that lets it be seen


_SYNC = "__syncthreads();"

FAULTS = (
    # --- races in shared memory ---
    Fault("tiled", "no barrier after the load", f"{_SYNC} // @loaded", "// @loaded", "race", "dot", 97),
    Fault(
        "tiled",
        "no barrier after the load, seen at the values",
        f"{_SYNC} // @loaded",
        "// @loaded",
        "race",
        "load_k",
        97,
    ),
    Fault("tiled", "no barrier before the overwrite", f"{_SYNC} // @used", "// @used", "race", "load_v", 97),
    Fault(
        "tiled",
        "barriers of a warp only",
        f"{_SYNC} // @loaded",
        "__syncwarp(); // @loaded",
        "race",
        "dot",
        97,
    ),
    Fault(
        "tiled",
        "barrier of a warp before the overwrite",
        f"{_SYNC} // @used",
        "__syncwarp(); // @used",
        "race",
        "load_v",
        97,
    ),
    Fault("tiled", "two rows into one", "Kj[r][c] = j0", "Kj[r / 2][c] = j0", "race", "load_k"),
    Fault(
        "tiled",
        "scores through one shared variable",
        "float dot = 0.0f;",
        "__shared__ float dot; dot = tid; // @one",
        "race",
        "one",
    ),
    Fault("reduction", "no barrier after filling", f"{_SYNC} // @filled", "// @filled", "race", "fold"),
    Fault("reduction", "no barrier after folding", f"{_SYNC} // @folded", "// @folded", "race", "fold"),
    Fault(
        "reduction",
        "barrier of the warp missing after taking",
        "__syncwarp(); // @taken",
        "// @taken",
        "race",
        "add",
    ),
    Fault(
        "reduction",
        "barrier of the warp missing after adding",
        "__syncwarp(); // @added",
        "// @added",
        "race",
        "take",
    ),
    Fault("reduction", "both barriers of the warp missing", "__syncwarp();", ";", "race", "add"),
    Fault(
        "reduction",
        "a shuffle in place of a barrier",
        "__syncwarp(); // @added",
        "__shfl_sync(~0u, t, 0); // @added",
        "race",
        "take",
    ),
    Fault(
        "reduction",
        "folds with a neighbour that folds",
        "part[t] += part[t + step]; // @fold",
        "part[t] += part[t + step / 2]; // @fold",
        "race",
        "fold",
    ),
    Fault(
        "reduction",
        "every thread sets the scale",
        "if (t == 0) scale = 0.5f;",
        "scale = 0.5f * t;",
        "race",
        "scale",
    ),
    Fault(
        "reduction",
        "reads the scale at once",
        "float sum = 0.0f;",
        "float sum = scale; // @early",
        "race",
        "early",
    ),
    Fault(
        "reduction",
        "stores past its own half",
        "part[t] = sum; // @put",
        "part[t] = sum; part[t ^ 1] = sum; // @put",
        "race",
        "put",
    ),
    Fault(
        "transpose", "no barrier between fill and store", f"{_SYNC} // @filled", "// @filled", "race", "store"
    ),
    Fault(
        "transpose",
        "stride too small, rows overlap",
        "tile[y * (TILE + 1) + x] =",
        "tile[y * (TILE - 1) + x] =",
        "race",
        "fill",
    ),
    Fault("vectors", "no barrier of the warp", "__syncwarp(); // @met", "// @met", "race", "beside"),
    Fault(
        "vectors",
        "reads the next warp's sums",
        "sums[warp][lane ^ 1]",
        "sums[(warp + 1) % 4][lane]",
        "race",
        "beside",
    ),
    Fault(
        "vectors",
        "a mask that leaves half the warp out",
        "__syncwarp(); // @met",
        "__syncwarp(lane % 2 ? 0xaaaaaaaau : 0x55555555u); // @met",
        "race",
        "beside",
    ),
    # --- races in global memory ---
    Fault(
        "reduction",
        "total without an atomic",
        "atomicAdd(&total, part[0] * scale);",
        "total += part[0] * scale;",
        "race",
        "total",
    ),
    Fault(
        "reduction",
        "every block stores the result",
        "if (atomicAdd(&finished, 1) == gridDim.x - 1) O[0] = atomicAdd(&total, 0.0f);",
        "O[0] = part[0];",
        "race",
        "last",
    ),
    Fault("reduction", "counter without an atomic", "atomicAdd(&finished, 1)", "finished++", "race", "last"),
    Fault(
        "reduction",
        "reads what another block writes",
        "sum += Q[i] * Q[i];",
        "{ O[i] = Q[i]; sum += O[n - 1 - i]; }",
        "race",
        "read",
    ),
    Fault(
        "tiled",
        "rows of two blocks overlap",
        "O[row * D + c] =",
        "O[row % BR * D + c] =",
        "race",
        "store",
        97,
    ),
    Fault(
        "tiled",
        "reads its neighbour's row of the output",
        "acc[c] / l; // @store",
        "acc[c] / l + 0 * O[(row ^ 1) * D + c]; // @store",
        "race",
        "store",
        64,
    ),
    # --- out of bounds: shared ---
    Fault(
        "tiled",
        "one column too many",
        "const int r = i / D, c = i % D;",
        "const int r = i / D, c = i % D + 2;",
        "out_of_bounds",
        "load_k",
    ),
    Fault(
        "tiled",
        "one row too many",
        "for (int j = 0; j < BC; j++) {\n            float dot",
        "for (int j = 0; j <= BC; j++) {\n            float dot",
        "out_of_bounds",
        "dot",
    ),
    Fault(
        "tiled",
        "rows beyond the tile",
        "i < BC * D; i += BR",
        "i < BR * D; i += BR",
        "out_of_bounds",
        "load_k",
    ),
    Fault(
        "tiled",
        "reads past the values",
        "acc[c] += p * Vj[j][c];",
        "acc[c] += p * (&Vj[0][0])[BC * (D + 1) + c];",
        "out_of_bounds",
        "weigh",
    ),
    Fault(
        "reduction", "array of half the threads", "part[THREADS]", "part[THREADS / 2]", "out_of_bounds", "put"
    ),
    Fault(
        "reduction",
        "index before the beginning",
        "part[t + step]; // @fold",
        "part[t - 1]; // @fold",
        "out_of_bounds",
        "fold",
    ),
    Fault("vectors", "row of a warp that has none", "sums[4][32]", "sums[3][32]", "out_of_bounds", "put"),
    # --- out of bounds: dynamic shared ---
    Fault(
        "transpose",
        "no dynamic shared memory",
        ", TILE * (TILE + 1) * sizeof(float)>>>",
        ">>>",
        "out_of_bounds",
        "fill",
    ),
    Fault(
        "transpose",
        "too little dynamic shared memory",
        "TILE * (TILE + 1) * sizeof(float)>>>",
        "TILE * (TILE + 1)>>>",
        "out_of_bounds",
        "fill",
    ),
    Fault(
        "transpose",
        "without the padding's bytes",
        "TILE * (TILE + 1) * sizeof(float)>>>",
        "TILE * TILE * sizeof(float)>>>",
        "out_of_bounds",
        "fill",
    ),
    Fault(
        "transpose",
        "before dynamic shared memory",
        "tile[y * (TILE + 1) + x] =",
        "tile[y * (TILE + 1) + x - 1] =",
        "out_of_bounds",
        "fill",
    ),
    # --- out of bounds: global ---
    Fault(
        "tiled",
        "loads rows past N of Q",
        "row < N ? Q[row * D + c] : 0.0f",
        "Q[row * D + c]",
        "out_of_bounds",
        "load_q",
    ),
    Fault(
        "tiled",
        "loads rows past N of K",
        "j0 + r < N ? K[(j0 + r) * D + c] : 0.0f",
        "K[(j0 + r) * D + c]",
        "out_of_bounds",
        "load_k",
    ),
    Fault("tiled", "stores rows past N", "if (row < N)", "if (row <= N)", "out_of_bounds", "store"),
    Fault("tiled", "stores every row", "if (row < N)", "if (row >= 0)", "out_of_bounds", "store"),
    Fault(
        "tiled", "reads before K", "K[(j0 + r) * D + c]", "K[(j0 + r - 1) * D + c]", "out_of_bounds", "load_k"
    ),
    Fault(
        "tiled", "far out of K", "K[(j0 + r) * D + c]", "K[(j0 + r) * 4096 + c]", "out_of_bounds", "load_k"
    ),
    Fault("transpose", "workspace too small", "n * sizeof(float));", "n);", "out_of_bounds", "copy"),
    Fault("transpose", "guard off by one", "if (i < n)", "if (i <= n)", "out_of_bounds", "copy"),
    Fault(
        "transpose",
        "guards swapped",
        "to_row < d && to_column < N",
        "to_row < N && to_column < N",
        "out_of_bounds",
        "store",
        41,
        33,
    ),
    Fault(
        "vectors",
        "a vector past the end",
        "Q + last * d + c)",
        "Q + (last + 1) * d + c)",
        "out_of_bounds",
        "load",
    ),
    # --- out of bounds: local arrays ---
    Fault(
        "tiled",
        "local array too short",
        "float q[D], acc[D];",
        "float q[D], acc[D - 1];",
        "out_of_bounds",
        "clear",
    ),
    Fault("tiled", "local scores too short", "float s[BC];", "float s[BC / 2];", "out_of_bounds", "score"),
    Fault(
        "vectors",
        "one weight too many",
        "for (int i = 0; i < count; i++)",
        "for (int i = 0; i <= count; i++)",
        "out_of_bounds",
        "weigh",
    ),
    # --- other memory errors ---
    Fault(
        "vectors",
        "a misaligned vector",
        "Q + last * d + c)",
        "Q + last * d + c + (c > 0 ? -1 : 1))",
        "misaligned",
        "load",
        only="g++",
    ),  # clang splits the load before it is instrumented
    Fault(
        "transpose", "use after free", "copy_in<<<", "cudaFree(work); copy_in<<<", "use_after_free", "copy"
    ),
    Fault(
        "transpose",
        "freed between the kernels",
        "const dim3 block",
        "cudaFree(work);\n    const dim3 block",
        "use_after_free",
        "fill",
    ),
    Fault(
        "transpose",
        "host pointer in a kernel",
        "cudaMalloc(&work, n * sizeof(float));",
        "work = (float*)malloc(n * sizeof(float));",
        "host_pointer",
        "copy",
    ),
    Fault(
        "transpose",
        "host reads device memory",
        "cudaFree(work); // @free",
        "if (work[0] > 1e9f) cudaFree(nullptr); // @free",
        "host_access",
        "free",
    ),
    Fault(
        "transpose",
        "host writes device memory",
        "cudaFree(work); // @free",
        "O[0] = 1.0f; // @free",
        "host_access",
        "free",
    ),
    Fault(
        "vectors",
        "copies more than there is",
        "cudaMemcpy(device, host, sizeof host,",
        "cudaMemcpy(device, host, 2 * sizeof host,",
        "bad_copy",
        "up",
    ),
    Fault(
        "vectors",
        "copies in the wrong direction",
        "cudaMemcpyDeviceToHost);",
        "cudaMemcpyHostToDevice);",
        "bad_copy",
        "down",
    ),
    # --- uninitialised ---
    Fault(
        "tiled",
        "never loads V",
        "Vj[r][c] = j0 + r < N ? V[(j0 + r) * D + c] : 0.0f;",
        "",
        "uninitialised",
        "weigh",
    ),
    Fault(
        "tiled",
        "does not clear the tail of K",
        "Kj[r][c] = j0 + r < N ? K[(j0 + r) * D + c] : 0.0f;",
        "if (j0 + r < N) Kj[r][c] = K[(j0 + r) * D + c];",
        "uninitialised",
        "dot",
        31,
    ),
    Fault(
        "tiled",
        "rows past N return early",
        "float q[D], acc[D];",
        "if (row >= N) return;\n    float q[D], acc[D];",
        "uninitialised",
        "dot",
    ),
    Fault(
        "tiled",
        "adds to an output that nobody cleared",
        "O[row * D + c] = acc",
        "O[row * D + c] += acc",
        "uninitialised",
        "store",
    ),
    Fault(
        "transpose",
        "workspace is never filled",
        "copy_in<<<(n + 255) / 256, 256>>>(Q, work, n);",
        "",
        "uninitialised",
        "fill",
    ),
    Fault(
        "transpose",
        "workspace is filled by half",
        "if (i < n) work",
        "if (i < n / 2) work",
        "uninitialised",
        "fill",
    ),
    Fault("reduction", "scale is never set", "if (t == 0) scale = 0.5f;", "", "uninitialised", "total"),
    Fault(
        "reduction",
        "only even threads put their part",
        "part[t] = sum; // @put",
        "if (t % 2) part[t] = sum; // @put",
        "uninitialised",
        "fold",
    ),
    # --- barriers ---
    Fault(
        "tiled",
        "barrier under the row's guard",
        f"{_SYNC} // @loaded",
        f"if (row < N) {_SYNC} // @loaded",
        "barrier",
        "loaded",
    ),
    Fault(
        "tiled",
        "half of the block skips a barrier",
        f"{_SYNC} // @used",
        f"if (tid < 32) {_SYNC} // @used",
        "barrier",
        "used",
        97,
    ),
    Fault(
        "reduction",
        "barrier in a branch",
        f"{_SYNC} // @folded",
        f"if (t < step) {_SYNC} // @folded",
        "barrier",
        "folded",
    ),
    Fault(
        "reduction",
        "threads return before a barrier",
        "part[t] = sum; // @put",
        "if (t >= 96) return;\n    part[t] = sum; // @put",
        "exited_before_barrier",
        "filled",
    ),
    Fault(
        "vectors",
        "half of a warp at a barrier, half at a shuffle",
        "for (int step = 16; step > 0; step /= 2) sum",
        "if (lane < 16) __syncthreads(); for (int step = 16; step > 0; step /= 2) sum",
        "barrier",
        "shuffle",
    ),
    # --- endless loops ---
    Fault("tiled", "a loop that does not advance", "j0 += BC)", "j0 += 0)", "hang", "*"),
    Fault(
        "vectors",
        "a step that stays 0",
        "for (int c = lane * 4; c < d; c += 128)",
        "for (int c = lane * 4; c < d; c += 0)",
        "hang",
        "*",
    ),
)
