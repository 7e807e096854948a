// What a lane is written in by hand. On a GPU a lane is a thread, and `real`, `whole`, `word` and
// `mask` are a number each; on a CPU they are UNROLL vectors of WIDTH lanes. A loop runs
// `while (any_lane(going))`, and `select(going, a, b)` keeps what is done: on a GPU both vanish.
// The sizes of the program stand before this text as macros, LANES among them.
#ifdef __CUDACC__

#define UNROLLED _Pragma("unroll")
#define LANE static __device__ __forceinline__
typedef float real;
typedef int whole;
typedef unsigned int word;
typedef bool mask;

LANE real select(mask m, real a, real b) { return m ? a : b; }
LANE whole select(mask m, whole a, whole b) { return m ? a : b; }
LANE word select(mask m, word a, word b) { return m ? a : b; }
LANE mask any_lane(mask m) { return m; }
LANE whole lane_index(int i) { return i; }
LANE real to_real(whole x) { return (float)x; }
LANE word to_word(whole x) { return (unsigned)x; }
LANE whole to_whole(word x) { return (int)x; }
LANE real bits_to_real(word x) { return __uint_as_float(x); }
LANE real square_root(real x) { return sqrtf(x); }
LANE real inverse_root(real x) { return rsqrtf(x); }
LANE void sine_cosine(real x, real *sine, real *cosine) { sincosf(x, sine, cosine); }
LANE real exponential(real x) { return expf(x); }
LANE real logarithm(real x) { return logf(x); }
LANE real magnitude(real x) { return fabsf(x); }
LANE real largest(real a, real b) { return fmaxf(a, b); }
LANE real smallest(real a, real b) { return fminf(a, b); }
LANE whole ones(word x) { return __popc(x); }
LANE word rotate(word x, int r) { return __funnelshift_l(x, x, r); }
template <class T> LANE T gather(const T *table, whole at) { return __ldg(table + at); }
template <class T> LANE T load(const T *a, int i, int stride = 1, int offset = 0) {
    return a[(long long)i * stride + offset];
}
template <class T> LANE void store(T *a, int i, T x, int stride = 1, int offset = 0) {
    a[(long long)i * stride + offset] = x;
}

#else

#include <math.h>
#include <stdint.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#if defined __AVX512F__
#define WIDTH 16
#define LIBMVEC(name) _ZGVeN16v_##name
#elif defined __AVX2__
#define WIDTH 8
#define LIBMVEC(name) _ZGVdN8v_##name
#else
#define WIDTH 4
#define LIBMVEC(name) _ZGVbN4v_##name
#endif
#ifndef UNROLL
#define UNROLL 1
#endif
#define UNROLLED _Pragma("GCC unroll 64")
#define INLINE inline __attribute__((always_inline))
#define LANE static INLINE
#define EACH for (int u = 0; u < UNROLL; u++)
#define OPERATOR(result, op) \
    friend INLINE result operator op(pack a, pack b) { \
        result r; \
        EACH r.v[u] = a.v[u] op b.v[u]; \
        return r; \
    }

typedef int32_t whole_vector __attribute__((vector_size(4 * WIDTH)));
struct mask {
    whole_vector v[UNROLL];
    friend INLINE mask operator&(mask a, mask b) { EACH a.v[u] &= b.v[u]; return a; }
    friend INLINE mask operator|(mask a, mask b) { EACH a.v[u] |= b.v[u]; return a; }
    friend INLINE mask operator!(mask a) { EACH a.v[u] = ~a.v[u]; return a; }
    mask &operator&=(mask b) { return *this = *this & b; }
};

template <class T> struct pack {
    typedef T vector __attribute__((vector_size(4 * WIDTH)));
    vector v[UNROLL];
    pack() = default;
    INLINE pack(T x) { EACH v[u] = x - vector{}; }
    OPERATOR(pack, +) OPERATOR(pack, -) OPERATOR(pack, *) OPERATOR(pack, /)
    OPERATOR(pack, &) OPERATOR(pack, |) OPERATOR(pack, ^)
    OPERATOR(mask, <) OPERATOR(mask, >) OPERATOR(mask, <=) OPERATOR(mask, >=)
    OPERATOR(mask, ==) OPERATOR(mask, !=)
    friend INLINE pack operator-(pack a) { EACH a.v[u] = -a.v[u]; return a; }
    friend INLINE pack operator~(pack a) { EACH a.v[u] = ~a.v[u]; return a; }
    friend INLINE pack operator<<(pack a, int s) { EACH a.v[u] = a.v[u] << s; return a; }
    friend INLINE pack operator>>(pack a, int s) { EACH a.v[u] = a.v[u] >> s; return a; }
    friend INLINE pack select(mask m, pack a, pack b) {
        pack r;
        EACH r.v[u] = m.v[u] ? a.v[u] : b.v[u];
        return r;
    }
    pack &operator+=(pack b) { return *this = *this + b; }
    pack &operator-=(pack b) { return *this = *this - b; }
    pack &operator*=(pack b) { return *this = *this * b; }
};
typedef pack<float> real;
typedef pack<int32_t> whole;
typedef pack<uint32_t> word;

LANE bool any_lane(mask m) {
    whole_vector all = m.v[0];
    for (int u = 1; u < UNROLL; u++) all |= m.v[u];
#if defined __AVX512F__
    return _mm512_test_epi32_mask((__m512i)all, (__m512i)all) != 0;
#elif defined __AVX2__
    return !_mm256_testz_si256((__m256i)all, (__m256i)all);
#else
    int32_t some = 0;
    for (int k = 0; k < WIDTH; k++) some |= all[k];
    return some != 0;
#endif
}
LANE whole lane_index(int i) {
    whole r;
    EACH for (int k = 0; k < WIDTH; k++) r.v[u][k] = i + u * WIDTH + k;
    return r;
}
LANE real to_real(whole x) {
    real r;
    EACH r.v[u] = __builtin_convertvector(x.v[u], real::vector);
    return r;
}
LANE word to_word(whole x) { word r; EACH r.v[u] = (word::vector)x.v[u]; return r; }
LANE whole to_whole(word x) { whole r; EACH r.v[u] = (whole::vector)x.v[u]; return r; }
LANE real bits_to_real(word x) { real r; EACH r.v[u] = (real::vector)x.v[u]; return r; }
LANE word real_to_bits(real x) { word r; EACH r.v[u] = (word::vector)x.v[u]; return r; }
LANE real largest(real a, real b) { return select(a > b, a, b); }
LANE real smallest(real a, real b) { return select(a < b, a, b); }
LANE real magnitude(real x) {
    EACH x.v[u] = (real::vector)((whole_vector)x.v[u] & 0x7fffffff);
    return x;
}
LANE real square_root(real x) {
    EACH for (int k = 0; k < WIDTH; k++) x.v[u][k] = sqrtf(x.v[u][k]);
    return x;
}
LANE real inverse_root(real x) {
#if defined __AVX512F__
    real y;
    EACH y.v[u] = (real::vector)_mm512_rsqrt14_ps((__m512)x.v[u]);
    return y * (real(1.5f) - real(0.5f) * x * y * y);  // to 23 bits
#else
    return real(1.0f) / square_root(x);
#endif
}
// Of angles up to some thousands, to 2 ULP (Cephes' sincosf).
LANE void sine_cosine(real x, real *sine, real *cosine) {
    const real round = 12582912.0f;  // a number whose last bit is worth 1
    real shifted = x * 0.636619772f + round, turns = shifted - round;
    real y = ((x - turns * 1.5703125f) - turns * 4.837512969970703125e-4f)
           - turns * 7.54978995489188216e-8f;
    real z = y * y;
    real s = y + y * z * ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f);
    real c = 1.0f - 0.5f * z
           + z * z * ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f);
    word quarter = real_to_bits(shifted);
    mask odd = (quarter & word(1u)) != word(0u);
    word sine_sign = (quarter & word(2u)) << 30, cosine_sign = ((quarter + 1u) & word(2u)) << 30;
    *sine = bits_to_real(real_to_bits(select(odd, c, s)) ^ sine_sign);
    *cosine = bits_to_real(real_to_bits(select(odd, s, c)) ^ cosine_sign);
}
#ifdef __x86_64__
#define BY_LIBRARY(name, f) \
    extern "C" real::vector LIBMVEC(f)(real::vector); \
    LANE real name(real x) { EACH x.v[u] = LIBMVEC(f)(x.v[u]); return x; }
#else
#define BY_LIBRARY(name, f) \
    LANE real name(real x) { EACH for (int k = 0; k < WIDTH; k++) x.v[u][k] = f(x.v[u][k]); return x; }
#endif
BY_LIBRARY(exponential, expf)
BY_LIBRARY(logarithm, logf)
LANE whole ones(word x) {
    whole r;
    EACH for (int k = 0; k < WIDTH; k++) r.v[u][k] = __builtin_popcount(x.v[u][k]);
    return r;
}
LANE word rotate(word x, int r) { return (x << r) | (x >> (32 - r)); }
template <class T> LANE pack<T> gather(const T *table, whole at) {
    pack<T> r;
    EACH for (int k = 0; k < WIDTH; k++) r.v[u][k] = table[at.v[u][k]];
    return r;
}
template <class T> LANE pack<T> load(const T *a, int i, int stride = 1, int offset = 0) {
    pack<T> r;
    EACH for (int k = 0; k < WIDTH; k++)
        r.v[u][k] = a[(i + u * WIDTH + k) * (int64_t)stride + offset];
    return r;
}
template <class T, class X> LANE void store(T *a, int i, X value, int stride = 1, int offset = 0) {
    pack<T> x = value;
    EACH for (int k = 0; k < WIDTH; k++)
        a[(i + u * WIDTH + k) * (int64_t)stride + offset] = x.v[u][k];
}

#endif

// Random numbers as `jax.random` and `functrans.random` draw them: threefry-2x32 of 20 rounds.
struct random_key {
    word a, b;
};

LANE random_key threefry(random_key key, word x, word y) {
    const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    word keys[3] = {key.a, key.b, key.a ^ key.b ^ word(0x1BD11BDAu)};
    x = x + keys[0];
    y = y + keys[1];
    UNROLLED
    for (int group = 0; group < 5; group++) {
        UNROLLED
        for (int k = 0; k < 4; k++) {
            x = x + y;
            y = rotate(y, rotations[group % 2][k]) ^ x;
        }
        x = x + keys[(group + 1) % 3];
        y = y + keys[(group + 2) % 3] + word(group + 1u);
    }
    return {x, y};
}
LANE random_key fold_in(random_key key, word data) { return threefry(key, word(0u), data); }
LANE word random_bits(random_key key, unsigned index) {
    random_key drawn = threefry(key, word(0u), word(index));
    return drawn.a ^ drawn.b;
}
LANE real uniform(random_key key, unsigned index) {
    return bits_to_real((random_bits(key, index) >> 9) | word(0x3f800000u)) - real(1.0f);
}
