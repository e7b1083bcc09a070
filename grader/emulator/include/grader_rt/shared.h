// __shared__ variables: places in an arena that belongs to the block.
#pragma once

#include "core.h"

namespace grader_rt __attribute__((visibility("hidden"))) {

template <class T, std::size_t... Extents>
struct ArrayOf {
    using type = T;
};
template <class T, std::size_t First, std::size_t... Rest>
struct ArrayOf<T, First, Rest...> {
    using type = typename ArrayOf<T, Rest...>::type[First];
};
// array_t<float, 32, 64> is float[32][64]; array_t<float> is float.
template <class T, std::size_t... Extents>
using array_t = typename ArrayOf<T, Extents...>::type;

// One declaration. Its place is chosen when a launch first comes to it.
struct SharedSite {
    std::uint64_t launch;
    std::size_t offset;
};

GRADER_COLD void place_shared(SharedSite& site, const char* name, int line, std::size_t size, std::size_t align);

// Says at load time how much a function declares, so that the limit of 48 KB is known before any launch.
bool register_shared(const char* function, int line, std::size_t size);

// `Declaration` is a local type beside the variable: one for each instantiation of the function around it.
template <class Declaration, class T>
struct SharedOf {
    static inline SharedSite site{};
    static inline const bool registered = register_shared(Declaration::function(), Declaration::line(), sizeof(T));
};

template <class Declaration, class T>
GRADER_INLINE T* shared_variable(const char* name) {
    SharedSite& site = SharedOf<Declaration, T>::site;
    static_cast<void>(&SharedOf<Declaration, T>::registered);
    if (__builtin_expect(__atomic_load_n(&site.launch, __ATOMIC_ACQUIRE) != launch_id, 0))
        place_shared(site, name, Declaration::line(), sizeof(T), alignof(T));
    return reinterpret_cast<T*>(shared_arena + site.offset);
}

// `extern __shared__ T name[]` at file scope is a pointer of each OS thread, set when it enters a launch.
void on_launch(void (*set)());
struct DynamicAtFileScope {
    explicit DynamicAtFileScope(void (*set)()) { on_launch(set); }
};

extern const char* dynamic_name;  // for messages of checked mode

template <class T>
GRADER_INLINE T* dynamic_pointer() {
    return reinterpret_cast<T*>(dynamic_shared);
}

}  // namespace grader_rt

#ifdef GRADER_CHECKED
#define GRADER_NAME_DYNAMIC(name) ::grader_rt::dynamic_name = name
#else
#define GRADER_NAME_DYNAMIC(name) static_cast<void>(0)
#endif

#define GRADER_SHARED_VARIABLE(unique, declared_line, name, ...)                \
    struct name##_grader_declaration {                                          \
        static const char* function() { return __PRETTY_FUNCTION__; }           \
        static constexpr int line() { return declared_line; }                   \
    };                                                                          \
    auto& name = *::grader_rt::shared_variable<name##_grader_declaration, __VA_ARGS__>(#name)
#define GRADER_SHARED_DYNAMIC(line, name, ...) \
    GRADER_NAME_DYNAMIC(#name);                \
    __VA_ARGS__* const name = ::grader_rt::dynamic_pointer<__VA_ARGS__>()
#define GRADER_SHARED_DYNAMIC_FILE(line, name, ...)                           \
    static GRADER_THREAD_LOCAL __VA_ARGS__* name;                             \
    static const ::grader_rt::DynamicAtFileScope name##_grader_registration { \
        [] { name = ::grader_rt::dynamic_pointer<__VA_ARGS__>(); }            \
    }
#define GRADER_SHARED_STATIC(unique, line, name, ...) static thread_local __VA_ARGS__ name
#define GRADER_SHARED_FALLBACK
