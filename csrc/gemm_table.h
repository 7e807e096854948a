// The table of one instruction set, from the templates of gemm_micro.h, gemm_pack.h and
// gemm_few.h.

template <typename T, int MR, int NV>
constexpr Kernels floating_kernels() {
  return {MR, NV * Vector<T>::lanes, 1, sizeof(T), sizeof(T), block<Plain<T>, MR, NV>,
          direct<Plain<T>, MR, NV>, vector_rows<T>, vector_dots<T>,
          {finish<T, float>, finish<T, double>, finish<T, Bf16>, finish<T, F16>}, kBlocks};
}

// Integers are products of few programs: small kernels, for the size of the library. Signed ones
// run as unsigned: they wrap.
template <typename T>
constexpr Kernels integer_kernels() {
  return {4, 2 * Vector<T>::lanes, 1, sizeof(T), sizeof(T), block<Plain<T>, 4, 2>,
          direct<Plain<T>, 4, 2>, vector_rows<T>, vector_dots<T>,
          {nullptr, nullptr, nullptr, nullptr, finish<T, unsigned char>, finish<T, u16>,
           finish<T, u32>, finish<T, u64>, finish<T, unsigned char>, finish<T, u16>,
           finish<T, u32>, finish<T, u64>}};
}

constexpr Kernels kFloat = floating_kernels<float, kFloatRows, kFloatVectors>();
constexpr Kernels kDouble = floating_kernels<double, kDoubleRows, kDoubleVectors>();
constexpr Kernels kInt = integer_kernels<u32>();
constexpr Kernels kLong = integer_kernels<u64>();

constexpr Isa kTable = {
    kIsaName,
    {&kFloat, &kDouble, &kFloat, &kFloat, &kInt, &kInt, &kInt, &kLong, &kInt, &kInt, &kInt, &kLong},
    {pack<float, float>, pack<double, double>, pack<Bf16, float>, pack<F16, float>,
     pack<signed char, u32>, pack<short, u32>, pack<u32, u32>, pack<u64, u64>,
     pack<unsigned char, u32>, pack<u16, u32>, pack<u32, u32>, pack<u64, u64>},
    {dots_of_few<WideDots<float, float>>, dots_of_few<WideDots<double, double>>,
     dots_of_few<WideDots<Bf16, float>>, dots_of_few<WideDots<F16, float>>},
    {nullptr, nullptr, direct<WideRows<Bf16, float>, kFloatRows, kFloatVectors>,
     direct<WideRows<F16, float>, kFloatRows, kFloatVectors>},
};
