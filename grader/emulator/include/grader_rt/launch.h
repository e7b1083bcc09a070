// kernel<<<grid, block, shared, stream>>>(arguments), as the rewriter spells it.
#pragma once

#include "core.h"

struct CUstream_st;

namespace grader_rt __attribute__((visibility("hidden"))) {

struct Config {
    dim3 grid, block;
    std::size_t shared;
};

inline Config config(dim3 grid, dim3 block, std::size_t shared = 0, CUstream_st* = nullptr) {
    return Config{grid, block, shared};
}

// A launch under way. `invoke` runs one thread.
struct Launch {
    const char* name;
    int line;
    Config config;
    const void* function;  // null in the form that has only a lambda
    void (*invoke)(const void* closure);
    const void* closure;
};

// A host pointer is replaced by one that faults when it is used, as it would on a GPU.
void* check_pointer(const Launch& launch, int index, const void* pointer);
void run(Launch& launch);

template <class T>
GRADER_INLINE void check_argument(const Launch& launch, int& index, T& argument) {
    ++index;
    if constexpr (std::is_pointer<T>::value && !std::is_function<std::remove_pointer_t<T>>::value)
        argument = (T)check_pointer(launch, index, (const void*)argument);
}

template <class Kernel, class... Arguments>
inline void start(Launch& launch, Kernel kernel, Arguments... arguments) {
    int index = 0;
    (check_argument(launch, index, arguments), ...);
    (void)index;
    const auto body = [=] { kernel(arguments...); };
    launch.invoke = [](const void* closure) { (*static_cast<decltype(&body)>(closure))(); };
    launch.closure = &body;
    run(launch);
}

template <class... Parameters>
struct FunctionLauncher {
    const char* name;
    int line;
    void (*kernel)(Parameters...);
    Config config;
    void operator()(Parameters... arguments) const {
        Launch launch{name, line, config, reinterpret_cast<const void*>(kernel), nullptr, nullptr};
        start(launch, kernel, arguments...);
    }
};

template <class Lambda>
struct LambdaLauncher {
    const char* name;
    int line;
    Config config;
    Lambda kernel;
    template <class... Arguments>
    void operator()(Arguments... arguments) const {
        Launch launch{name, line, config, nullptr, nullptr, nullptr};
        start(launch, kernel, arguments...);
    }
};

template <class... Parameters>
inline FunctionLauncher<Parameters...> launch(const char* name, int line, void (*kernel)(Parameters...), Config config) {
    return {name, line, kernel, config};
}

template <class Lambda>
inline LambdaLauncher<Lambda> launch_with(const char* name, int line, Lambda kernel, Config config) {
    return {name, line, config, kernel};
}

// In either order: the rewriter keeps the order of the student's tokens.
template <class Lambda>
inline LambdaLauncher<Lambda> launch_with(const char* name, int line, Config config, Lambda kernel) {
    return {name, line, config, kernel};
}

}  // namespace grader_rt
