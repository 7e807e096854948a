/* cuFFT, cuSOLVER and cuBLAS for the fake driver: small transforms and factors by their definitions,
   as work of its streams. Functions that no test runs give the status 7. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

extern int fake_enqueue(void *stream, void (*run)(void *), const void *argument, size_t n);
extern int fake_on_device(const void *p, size_t n);

/* what tests read and set */
int fake_plans_made = 0, fake_plans_alive = 0, fake_transforms = 0, fake_handles = 0;
int fake_single = 0, fake_batched = 0; /* factors and solves */
int fake_fail = 0;                     /* the status of the next plan or factor */

static int failing(void) {
  int status = fake_fail;
  fake_fail = 0;
  return status;
}

/* ---------------------------------------------------------------- cuFFT */
enum { R2C = 0x2a, C2R = 0x2c, C2C = 0x29, WIDE = 0x40 };
typedef struct {
  int rank, type, direction;
  long long n[3], batch;
  void *work, *stream, *x, *out;
} plan;
static plan plans[512];
static int last_plan = 0;

int cufftCreate(int *p) {
  *p = ++last_plan;
  fake_plans_made++;
  fake_plans_alive++;
  return 0;
}
int cufftDestroy(int p) { (void)p; fake_plans_alive--; return 0; }
int cufftSetStream(int p, void *s) { plans[p].stream = s; return 0; }
int cufftSetAutoAllocation(int p, int on) { (void)p; return on ? 4 : 0; }
int cufftSetWorkArea(int p, void *work) { plans[p].work = work; return 0; }
int cufftMakePlanMany64(int p, int rank, long long *n, long long *in, long long is, long long id,
                        long long *out, long long os, long long od, int type, long long batch,
                        size_t *work) {
  (void)is; (void)id; (void)os; (void)od;
  if (in || out || rank > 3) return 4;
  plans[p].rank = rank;
  plans[p].type = type;
  plans[p].batch = batch;
  memcpy(plans[p].n, n, (size_t)rank * sizeof *n);
  *work = 4096;
  return failing();
}

static double complex get(const void *x, long long i, int is_real, int wide) {
  if (is_real) return wide ? ((const double *)x)[i] : ((const float *)x)[i];
  return wide ? ((const double complex *)x)[i] : ((const float complex *)x)[i];
}
static void put(void *x, long long i, double complex v, int is_real, int wide) {
  if (is_real && wide) ((double *)x)[i] = creal(v);
  else if (is_real) ((float *)x)[i] = (float)creal(v);
  else if (wide) ((double complex *)x)[i] = v;
  else ((float complex *)x)[i] = (float complex)v;
}
static void transform(void *argument) {
  plan *p = argument;
  int wide = p->type & WIDE, type = p->type & ~WIDE;
  long long n[3] = {1, 1, 1}, size, half, ins, outs;
  for (int i = 0; i < p->rank; i++) n[3 - p->rank + i] = p->n[i];
  size = n[0] * n[1] * n[2];
  half = n[0] * n[1] * (n[2] / 2 + 1);
  ins = type == C2R ? half : size;
  outs = type == R2C ? half : size;
  for (long long b = 0; b < p->batch; b++)
    for (long long k = 0; k < outs; k++) {
      long long kw = type == R2C ? n[2] / 2 + 1 : n[2];
      long long k2 = k % kw, k1 = k / kw % n[1], k0 = k / kw / n[1];
      double complex sum = 0;
      for (long long j = 0; j < size; j++) {
        long long j2 = j % n[2], j1 = j / n[2] % n[1], j0 = j / n[2] / n[1];
        double angle = 2 * M_PI * ((double)(k0 * j0) / n[0] + (double)(k1 * j1) / n[1] +
                                   (double)(k2 * j2) / n[2]);
        double complex v;
        if (type == C2R) { /* a line: the other half is the conjugate */
          int mirrored = j2 > n[2] / 2;
          long long at = mirrored ? n[2] - j2 : j2;
          v = get(p->x, b * ins + at, 0, wide);
          if (at == 0 || 2 * at == n[2]) v = creal(v);
          if (mirrored) v = conj(v);
        } else {
          v = get(p->x, b * ins + j, type == R2C, wide);
        }
        sum += v * cexp(I * p->direction * angle);
      }
      put(p->out, b * outs + k, sum, type == C2R, wide);
    }
  if (type == C2R) memset(p->x, 0xFF, (size_t)(p->batch * ins) * (wide ? 16 : 8));
}
static int exec(int at, void *x, void *out, int type, int direction) {
  plan p = plans[at];
  if (p.type != type) return 3;
  if (!fake_on_device(p.work, 4096)) return 1;
  p.x = x;
  p.out = out;
  p.direction = direction;
  fake_transforms++;
  return fake_enqueue(p.stream, transform, &p, sizeof p);
}
int cufftExecC2C(int p, void *x, void *y, int d) { return exec(p, x, y, C2C, d); }
int cufftExecZ2Z(int p, void *x, void *y, int d) { return exec(p, x, y, C2C | WIDE, d); }
int cufftExecR2C(int p, void *x, void *y) { return exec(p, x, y, R2C, -1); }
int cufftExecD2Z(int p, void *x, void *y) { return exec(p, x, y, R2C | WIDE, -1); }
int cufftExecC2R(int p, void *x, void *y) { return exec(p, x, y, C2R, 1); }
int cufftExecZ2D(int p, void *x, void *y) { return exec(p, x, y, C2R | WIDE, 1); }

/* ---------------------------------------------------------------- cuSOLVER and cuBLAS */
typedef struct { void *stream; } handle;
int cusolverDnCreate(handle **h) { *h = calloc(1, sizeof **h); fake_handles++; return 0; }
int cusolverDnSetStream(handle *h, void *s) { h->stream = s; return 0; }
int cublasCreate_v2(handle **h) { *h = calloc(1, sizeof **h); fake_handles++; return 0; }
int cublasSetStream_v2(handle *h, void *s) { h->stream = s; return 0; }
int cusolverDnCreateSyevjInfo(void **p) { (void)p; return 7; }
int cusolverDnCreateGesvdjInfo(void **p) { (void)p; return 7; }

typedef struct { float *a; int n, *info; } factor;
static void factor_upper(void *argument) {
  factor *f = argument;
  float *a = f->a;
  int n = f->n;
  *f->info = 0;
  for (int j = 0; j < n; j++)
    for (int i = 0; i <= j; i++) {
      float sum = a[i + j * n];
      for (int k = 0; k < i; k++) sum -= a[k + i * n] * a[k + j * n];
      if (i < j) a[i + j * n] = sum / a[i + i * n];
      else if (sum > 0) a[i + i * n] = sqrtf(sum);
      else { *f->info = j + 1; return; }
    }
}
int cusolverDnSpotrf_bufferSize(handle *h, int upper, int n, float *a, int lda, int *work) {
  (void)h; (void)a;
  *work = 128;
  return upper == 1 && lda == n ? 0 : 3;
}
int cusolverDnSpotrf(handle *h, int upper, int n, float *a, int lda, void *work, int length,
                     int *info) {
  (void)upper; (void)lda;
  fake_single++;
  if (length != 128 || !fake_on_device(work, 512)) return 3;
  factor f = {a, n, info};
  int status = failing();
  return status ? status : fake_enqueue(h->stream, factor_upper, &f, sizeof f);
}
typedef struct { float **a; int n, *info, count; } factors;
static void factor_all(void *argument) {
  factors *f = argument;
  for (int i = 0; i < f->count; i++) {
    factor one = {f->a[i], f->n, f->info + i};
    factor_upper(&one);
  }
}
int cusolverDnSpotrfBatched(handle *h, int upper, int n, float **a, int lda, int *info, int count) {
  fake_batched++;
  if (upper != 1 || lda != n || !fake_on_device(a, 8 * (size_t)count)) return 3;
  factors f = {a, n, info, count};
  return fake_enqueue(h->stream, factor_all, &f, sizeof f);
}

typedef struct { int right, upper, transposed, unit, m, n, count; float *a, *b, **as, **bs; } system_;
/* x of triangle * x = b along one line of b, whose elements are `step` apart */
static void solve_line(const float *a, int n, int lower, int transposed, int unit, float *b,
                       int step) {
  for (int r = 0; r < n; r++) {
    int i = lower ? r : n - 1 - r;
    float sum = b[i * step];
    for (int k = lower ? 0 : i + 1; k < (lower ? i : n); k++)
      sum -= (transposed ? a[k + i * n] : a[i + k * n]) * b[k * step];
    b[i * step] = unit ? sum : sum / a[i + i * n];
  }
}
static void solve(void *argument) {
  system_ *s = argument;
  for (int c = 0; c < s->count; c++) {
    float *a = s->as ? s->as[c] : s->a, *b = s->bs ? s->bs[c] : s->b;
    int order = s->right ? s->n : s->m;
    int transposed = s->transposed != s->right; /* x a = b is a^T x^T = b^T */
    int lower = (s->upper == 0) != transposed;
    if (s->right)
      for (int i = 0; i < s->m; i++) solve_line(a, order, lower, transposed, s->unit, b + i, s->m);
    else
      for (int j = 0; j < s->n; j++)
        solve_line(a, order, lower, transposed, s->unit, b + j * s->m, 1);
  }
}
int cublasStrsm_v2(handle *h, int right, int upper, int operation, int unit, int m, int n,
                   const float *alpha, float *a, int lda, float *b, int ldb) {
  system_ s = {right, upper, operation, unit, m, n, 1, a, b, NULL, NULL};
  fake_single++;
  if (*alpha != 1 || lda != (right ? n : m) || ldb != m) return 3;
  return fake_enqueue(h->stream, solve, &s, sizeof s);
}
int cublasStrsmBatched(handle *h, int right, int upper, int operation, int unit, int m, int n,
                       const float *alpha, float **a, int lda, float **b, int ldb, int count) {
  system_ s = {right, upper, operation, unit, m, n, count, NULL, NULL, a, b};
  fake_batched++;
  if (*alpha != 1 || lda != (right ? n : m) || ldb != m) return 3;
  return fake_enqueue(h->stream, solve, &s, sizeof s);
}

#define NONE(prefix, real, complex) \
  int prefix##S##real(void) { return 7; } REST(prefix, real, complex)
#define REST(prefix, real, complex) \
  int prefix##D##real(void) { return 7; } \
  int prefix##C##complex(void) { return 7; } \
  int prefix##Z##complex(void) { return 7; }
REST(cusolverDn, potrf_bufferSize, potrf_bufferSize)
REST(cusolverDn, potrf, potrf)
REST(cusolverDn, potrfBatched, potrfBatched)
REST(cublas, trsm_v2, trsm_v2)
REST(cublas, trsmBatched, trsmBatched)
NONE(cublas, getrfBatched, getrfBatched)
NONE(cusolverDn, getrf_bufferSize, getrf_bufferSize)
NONE(cusolverDn, getrf, getrf)
NONE(cusolverDn, laswp, laswp)
NONE(cusolverDn, geqrf_bufferSize, geqrf_bufferSize)
NONE(cusolverDn, geqrf, geqrf)
NONE(cusolverDn, orgqr_bufferSize, ungqr_bufferSize)
NONE(cusolverDn, orgqr, ungqr)
NONE(cusolverDn, syevd_bufferSize, heevd_bufferSize)
NONE(cusolverDn, syevd, heevd)
NONE(cusolverDn, syevjBatched_bufferSize, heevjBatched_bufferSize)
NONE(cusolverDn, syevjBatched, heevjBatched)
NONE(cusolverDn, gesvdj_bufferSize, gesvdj_bufferSize)
NONE(cusolverDn, gesvdj, gesvdj)
NONE(cusolverDn, gesvdjBatched_bufferSize, gesvdjBatched_bufferSize)
NONE(cusolverDn, gesvdjBatched, gesvdjBatched)
