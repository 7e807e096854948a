// What the page calls: one image in, ten probabilities out, at places that it asks for.
#include "classify.h"

#ifdef __wasm__
#define EXPORTED(name) __attribute__((export_name(name)))
#else
#define EXPORTED(name)
#endif

static float image[64], probabilities[10];

EXPORTED("image_at") float *image_at(void) { return image; }
EXPORTED("probabilities_at") float *probabilities_at(void) { return probabilities; }
EXPORTED("run") int run(void) { return classify(image, probabilities); }
