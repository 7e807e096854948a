/* Roots and powers in float32. */
//: rsqrt_V needs sqrt_V splat_V
INL F rsqrt_V(F x) { return splat_V(1.0f) / sqrt_V(x); }
