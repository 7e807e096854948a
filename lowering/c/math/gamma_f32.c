/* The logarithm of the gamma function and its derivative in float32: by float64, so that they are
   right near their zeros too. */
//: lgamma_V needs tofloat_V todouble_V lgamma_D
INL F lgamma_V(F x) { return tofloat_V(lgamma_D(todouble_V(x))); }
//: digamma_V needs tofloat_V todouble_V digamma_D
INL F digamma_V(F x) { return tofloat_V(digamma_D(todouble_V(x))); }
