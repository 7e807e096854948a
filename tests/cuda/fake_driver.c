/* A CUDA driver without a device: device memory is malloc'd, and work waits in its stream until
   somebody waits for it, so that a missing wait gives wrong results here too. Kernels are the
   functions at the end of this file; a module is text, "FAKE" and a line "name kinds" for each. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
typedef struct stream stream;
enum { OK = 0, INVALID = 1, OOM = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, BAD_IMAGE = 200,
       NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700 };

typedef struct {
  void *func;
  unsigned grid[3], block[3], shared;
  void **params, **extra;
  void *kern, *ctx;
} kernel_params;
typedef struct { CUdeviceptr dst; size_t pitch; unsigned value, element; size_t width, height; }
    memset_params;
typedef struct {
  size_t sx, sy, sz, slod; int stype; const void *shost; CUdeviceptr sdev; void *sarr, *r0;
  size_t spitch, sheight;
  size_t dx, dy, dz, dlod; int dtype; void *dhost; CUdeviceptr ddev; void *darr, *r1;
  size_t dpitch, dheight, width, height, depth;
} memcpy_params;

/* what tests read and set */
long fake_limit = 1L << 40;       /* bytes of device memory */
int fake_fail_launch = 0;         /* the next launch gives this error when it runs, for ever */
int fake_version = 12080, fake_devices = 2, fake_init = OK;
long fake_allocated = 0, fake_allocations = 0, fake_launches = 0, fake_graph_launches = 0;
long fake_instantiations = 0, fake_node_updates = 0, fake_fail_updates = 0, fake_loads = 0;
long fake_unloads = 0, fake_waits = 0, fake_launch_sleep_us = 0, fake_calls = 0;
int fake_max_shared = 0;
int fake_refuse_loops = 0;          /* graphs with conditions cannot be instantiated */
int fake_early_launches = 0;        /* edges of graphs that let a kernel start before another ends */
char fake_last_kernel[64];
char fake_conditions_ptx[8192];     /* of the kernel that sets conditions of graphs */
unsigned fake_last_grid[3], fake_last_block[3], fake_last_shared;
long fake_captures = 0;           /* of what collectives launch */
int fake_eager = 0;               /* work runs at once, as on a device without other work */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sticky = OK;
static pid_t owner;

#define MAX_ARGS 32
typedef struct { char name[64]; char kinds[40]; void (*run)(void **args, unsigned grid); } function;
typedef struct { int count; function f[16]; } module;
typedef struct event event;
typedef enum { LAUNCH, FILL, COPY, READ, WRITE, RECORD, WAIT, LIBRARY, PRESET, BODY, CHILD } kind;
typedef struct graph graph;
typedef struct op {
  kind kind;
  struct op *next;
  function *f;
  unsigned grid;
  unsigned char args[MAX_ARGS][8];
  void *dst; const void *src; size_t bytes; int value;
  void *staged;
  void (*library)(void *); /* a library's work, on what is staged */
  event *e; stream *s; long target; /* of a wait: until that stream has done so much */
  graph *body; int loops; unsigned long long condition; /* of a node that runs if, or while */
} op;
struct stream { op *first, *last; long pushed, done; graph *capturing; int device, busy; };
struct event { stream *s; long target; double when; int timing; };
struct graph { op ops[256]; int count, edges; int after[256][3], waits[256]; };
typedef struct { graph g; } graph_exec;

static char contexts[8];
static __thread void *stack[16];
static __thread int depth = 0;
static stream *streams[64];
static int stream_count = 0;
static struct { char *p; size_t n; } memory[4096], pinned[64];
static int pinned_count = 0;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static int on_device(const void *p, size_t n) {
  for (int i = 0; i < 4096; i++)
    if (memory[i].p && (char *)p >= memory[i].p && (char *)p + n <= memory[i].p + memory[i].n)
      return 1;
  return 0;
}
static int is_pinned(const void *p) {
  for (int i = 0; i < pinned_count; i++)
    if ((char *)p >= pinned[i].p && (char *)p < pinned[i].p + pinned[i].n) return 1;
  return 0;
}

static void advance(stream *s, long target);
static struct { unsigned value, preset; } conditions[256]; /* a handle is an index + 1000 */
static int condition_count = 0;

static void run_op(op *o) {
  void *args[MAX_ARGS];
  if (sticky) return;
  switch (o->kind) {
    case LAUNCH:
      if (fake_fail_launch) { sticky = fake_fail_launch; return; }
      for (int i = 0; i < MAX_ARGS; i++) args[i] = o->args[i];
      for (const char *k = o->f->kinds; *k; k++)
        if (*k == 'p' && *(char **)args[k - o->f->kinds] &&
            !on_device(*(char **)args[k - o->f->kinds], 1)) { sticky = ILLEGAL_ADDRESS; return; }
      if (fake_launch_sleep_us) usleep((useconds_t)fake_launch_sleep_us);
      o->f->run(args, o->grid);
      fake_launches++;
      break;
    case FILL:
      if (!on_device(o->dst, o->bytes)) { sticky = ILLEGAL_ADDRESS; return; }
      memset(o->dst, o->value, o->bytes);
      break;
    case COPY: case READ: case WRITE:
      if ((o->kind != READ && !on_device(o->dst, o->bytes)) ||
          (o->kind != WRITE && !on_device(o->src, o->bytes))) { sticky = ILLEGAL_ADDRESS; return; }
      memmove(o->dst, o->staged ? o->staged : o->src, o->bytes);
      break;
    case RECORD: o->e->when = now(); break;
    case WAIT: advance(o->s, o->target); break;
    case LIBRARY: o->library(o->staged); break;
    case CHILD: break; /* its nodes were pushed in its place */
    case PRESET:
      for (int i = 0; i < condition_count; i++) conditions[i].value = conditions[i].preset;
      break;
    case BODY:
      while (conditions[o->condition - 1000].value && !sticky) {
        for (int i = 0; i < o->body->count; i++) run_op(&o->body->ops[i]);
        if (!o->loops) break;
      }
      break;
  }
}

__attribute__((visibility("default"))) void fake_yield(void) {
  pthread_mutex_unlock(&lock);
  usleep(100);
  pthread_mutex_lock(&lock);
}
static void pop(stream *s) { /* another thread may be at it, and wait for other devices */
  if (s->busy) { fake_yield(); return; }
  op *o = s->first;
  s->first = o->next;
  if (!s->first) s->last = NULL;
  s->busy = 1;
  run_op(o);
  s->busy = 0;
  s->done++;
  free(o->staged);
  free(o);
}
static void finish_stream(stream *s) { while (s->first || s->busy) pop(s); }
static void advance(stream *s, long target) {
  while (s && s->done < target && (s->first || s->busy)) pop(s);
}
static stream legacy;
static void finish_all(void) {
  finish_stream(&legacy);
  for (int i = 0; i < stream_count; i++) if (streams[i]) finish_stream(streams[i]);
}

static CUresult push(stream *s, op o) {
  if (s->capturing) {
    s->capturing->ops[s->capturing->count++] = o;
    return OK;
  }
  op *copy = malloc(sizeof o);
  *copy = o;
  copy->next = NULL;
  if (s->last) s->last->next = copy; else s->first = copy;
  s->last = copy;
  s->pushed++;
  if (fake_eager) finish_stream(s);
  return sticky;
}
static stream *real(stream *s) { return (size_t)s <= 2 ? &legacy : s; }

#define API __attribute__((visibility("default"))) CUresult
#define BEGIN pthread_mutex_lock(&lock); fake_calls++; \
  if (owner && owner != getpid()) { fprintf(stderr, "driver used after a fork\n"); abort(); }
#define END(r) do { CUresult r_ = (r); pthread_mutex_unlock(&lock); return r_; } while (0)
#define NEED_CONTEXT if (depth == 0 || !stack[depth - 1]) END(201);

API cuInit(unsigned f) { (void)f; owner = getpid(); return fake_init; }
API cuDriverGetVersion(int *v) { *v = fake_version; return OK; }
API cuGetErrorName(CUresult r, const char **s) {
  *s = r == OOM ? "CUDA_ERROR_OUT_OF_MEMORY" : r == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
     : r == BAD_IMAGE ? "CUDA_ERROR_INVALID_IMAGE" : "CUDA_ERROR_UNKNOWN";
  return OK;
}
API cuGetErrorString(CUresult r, const char **s) {
  *s = r == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "it failed";
  return OK;
}
API cuDeviceGetCount(int *n) { *n = fake_devices; return OK; }
API cuDeviceGet(int *d, int i) { *d = i; return i < fake_devices ? OK : 101; }
API cuDeviceGetName(char *s, int n, int d) { snprintf(s, n, "Fake GPU %d", d); return OK; }
API cuDeviceGetAttribute(int *v, int a, int d) {
  (void)d;
  *v = a == 16 ? 4 : a == 75 ? 9 : a == 76 ? 0 : a == 97 ? 232448 : 0;
  return OK;
}
API cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = (size_t)fake_limit; return OK; }
API cuDevicePrimaryCtxRetain(void **c, int d) { *c = &contexts[d]; return OK; }
API cuCtxGetCurrent(void **c) { *c = depth ? stack[depth - 1] : NULL; return OK; }
API cuCtxSetCurrent(void *c) {
  if (depth == 0) depth = 1;
  stack[depth - 1] = c;
  return OK;
}
API cuCtxPushCurrent_v2(void *c) { stack[depth++] = c; return OK; }
API cuCtxPopCurrent_v2(void **c) { *c = stack[--depth]; return OK; }
API cuCtxSynchronize(void) { BEGIN NEED_CONTEXT finish_all(); END(sticky); }
API cuMemGetInfo_v2(size_t *f, size_t *t) {
  *t = (size_t)fake_limit;
  *f = (size_t)(fake_limit - fake_allocated);
  return OK;
}
API cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
  BEGIN NEED_CONTEXT
  if (sticky) END(sticky);
  if (fake_allocated + (long)n > fake_limit) END(OOM);
  for (int i = 0; i < 4096; i++) {
    if (memory[i].p) continue;
    memory[i].p = aligned_alloc(512, (n + 511) / 512 * 512);
    memory[i].n = n;
    if (n <= (64u << 20)) memset(memory[i].p, 0xA5, n);
    fake_allocated += (long)n;
    fake_allocations++;
    *p = (CUdeviceptr)memory[i].p;
    END(OK);
  }
  END(OOM);
}
API cuMemFree_v2(CUdeviceptr p) {
  BEGIN
  finish_all();
  for (int i = 0; i < 4096; i++) {
    if (memory[i].p != (char *)p) continue;
    free(memory[i].p);
    fake_allocated -= (long)memory[i].n;
    memory[i].p = NULL;
    END(OK);
  }
  END(INVALID);
}
API cuMemHostAlloc(void **p, size_t n, unsigned f) {
  (void)f;
  BEGIN
  *p = malloc(n);
  pinned[pinned_count].p = *p;
  pinned[pinned_count++].n = n;
  END(OK);
}
API cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *h, size_t n, stream *s) {
  BEGIN NEED_CONTEXT
  op o = {.kind = WRITE, .dst = (void *)d, .src = h, .bytes = n};
  if (!is_pinned(h)) { o.staged = malloc(n); memcpy(o.staged, h, n); }
  END(push(real(s), o));
}
API cuMemcpyDtoHAsync_v2(void *h, CUdeviceptr d, size_t n, stream *s) {
  BEGIN NEED_CONTEXT
  op o = {.kind = READ, .dst = h, .src = (void *)d, .bytes = n};
  CUresult r = push(real(s), o);
  if (!is_pinned(h)) finish_stream(real(s));
  END(r);
}
API cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr h, size_t n, stream *s) {
  BEGIN NEED_CONTEXT
  op o = {.kind = COPY, .dst = (void *)d, .src = (void *)h, .bytes = n};
  END(push(real(s), o));
}
API cuMemcpyPeerAsync(CUdeviceptr d, void *dc, CUdeviceptr h, void *hc, size_t n, stream *s) {
  (void)dc; (void)hc;
  return cuMemcpyDtoDAsync_v2(d, h, n, s);
}
API cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, stream *s) {
  BEGIN NEED_CONTEXT
  op o = {.kind = FILL, .dst = (void *)d, .value = v, .bytes = n};
  END(push(real(s), o));
}
API cuPointerGetAttribute(int *v, int a, CUdeviceptr p) {
  (void)a;
  *v = 0;
  return on_device((void *)p, 1) ? OK : INVALID;
}
API cuStreamCreate(stream **s, unsigned f) {
  (void)f;
  BEGIN NEED_CONTEXT
  *s = calloc(1, sizeof **s);
  (*s)->device = (int)((char *)stack[depth - 1] - contexts);
  streams[stream_count++] = *s;
  END(OK);
}
API cuStreamCreateWithPriority(stream **s, unsigned f, int p) {
  return p == -5 ? cuStreamCreate(s, f) : INVALID;
}
API cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return OK; }
API cuStreamBeginCapture_v2(stream *s, int mode) {
  BEGIN
  if (mode != 1 || s->capturing) END(INVALID);
  s->capturing = calloc(1, sizeof *s->capturing);
  END(OK);
}
API cuStreamEndCapture(stream *s, graph **g) {
  BEGIN
  *g = s->capturing;
  s->capturing = NULL;
  fake_captures++;
  END(*g ? OK : INVALID);
}
API cuStreamSynchronize(stream *s) { BEGIN NEED_CONTEXT finish_stream(real(s)); END(sticky); }
API cuStreamWaitEvent(stream *s, event *e, unsigned f) {
  (void)f;
  BEGIN
  op o = {.kind = WAIT, .s = e->s, .target = e->target};
  fake_waits++;
  END(push(real(s), o));
}
API cuEventCreate(event **e, unsigned f) {
  *e = calloc(1, sizeof **e);
  (*e)->timing = !(f & 2);
  return OK;
}
API cuEventDestroy_v2(event *e) { (void)e; return OK; }
API cuEventRecord(event *e, stream *s) {
  BEGIN
  op o = {.kind = RECORD, .e = e};
  e->s = real(s);
  e->target = e->s->pushed + 1;
  END(push(e->s, o));
}
static int pending(event *e) { return e->s && e->s->done < e->target; }
API cuEventQuery(event *e) { BEGIN END(sticky ? sticky : pending(e) ? NOT_READY : OK); }
API cuEventSynchronize(event *e) { BEGIN advance(e->s, e->target); END(sticky); }
API cuEventElapsedTime(float *ms, event *a, event *b) {
  if (!a->timing || !b->timing) return INVALID;
  if (pending(a) || pending(b)) return NOT_READY;
  *ms = (float)(b->when - a->when);
  return OK;
}

/* for the fake libraries: work with a copy of its argument, and whether memory is the device's */
API fake_enqueue(stream *s, void (*run)(void *), const void *argument, size_t n) {
  BEGIN
  op o = {.kind = LIBRARY, .library = run, .staged = malloc(n), .bytes = n};
  memcpy(o.staged, argument, n);
  END(push(real(s), o));
}
__attribute__((visibility("default"))) int fake_on_device(const void *p, size_t n) {
  return on_device(p, n);
}

/* for the fake NCCL, whose work waits for that of other devices: with the lock held */
__attribute__((visibility("default"))) int fake_current_device(void) {
  return depth ? (int)((char *)stack[depth - 1] - contexts) : -1;
}
__attribute__((visibility("default"))) int fake_progress(int device) { /* whether there was work */
  for (int i = stream_count - 1; i >= 0; i--)
    if (streams[i]->device == device && streams[i]->first && !streams[i]->busy) { pop(streams[i]); return 1; }
  return 0;
}

/* kernels: the last argument of each is the number of elements */
#define F(k) (*(float **)a[k])
#define N(k) (*(int *)a[k])
static void k_add(void **a, unsigned g) {
  (void)g;
  for (int i = 0; i < N(3); i++) F(2)[i] = F(0)[i] + F(1)[i];
}
static void k_scale(void **a, unsigned g) {
  (void)g;
  float s = *(float *)a[2];
  for (int i = 0; i < N(3); i++) F(1)[i] = F(0)[i] * s;
}
static void k_below(void **a, unsigned g) { /* whether all are */
  (void)g;
  unsigned char *flag = *(unsigned char **)a[1];
  *flag = 1;
  for (int i = 0; i < N(3); i++) if (F(0)[i] >= *(float *)a[2]) *flag = 0;
}
static void k_increment(void **a, unsigned g) {
  (void)g;
  for (int i = 0; i < N(1); i++) F(0)[i] += 1;
}
static void k_scratch(void **a, unsigned g) { /* through its scratch memory, 64 bytes a program */
  float *scratch = *(float **)a[3];
  for (unsigned p = 0; p < g; p++) scratch[16 * p] = F(0)[p];
  for (unsigned p = 0; p < g; p++) F(1)[p] = scratch[16 * p] + (a[4] && *(void **)a[4] ? 1e9f : 0);
  (void)N(2);
}
static void k_many(void **a, unsigned g) { /* pointer, int64, double, pointer */
  (void)g;
  F(3)[0] = F(0)[0] + (float)*(long long *)a[1] + (float)*(double *)a[2];
}
static void k_decide(void **a, unsigned g) { /* by two flags, at null where they hold */
  (void)g;
  unsigned char *f[2] = {*(unsigned char **)a[0], *(unsigned char **)a[1]};
  int first = f[0] ? *f[0] : 1, second = f[1] ? *f[1] : 1;
  unsigned values[] = {first && second, first && second, !first, first && !second};
  for (int i = 0; i < 4; i++)
    if (N(6) >> i & 1) conditions[*(unsigned long long *)a[2 + i] - 1000].value = values[i];
}
static const struct { const char *name; void (*run)(void **, unsigned); } kernels[] = {
  {"add", k_add}, {"scale", k_scale}, {"increment", k_increment}, {"scratch", k_scratch},
  {"many", k_many}, {"below", k_below}};

API cuModuleLoadData(module **m, const void *image) {
  BEGIN NEED_CONTEXT
  if (sticky) END(sticky);
  const char *text = image;
  if (strstr(text, "cudaGraphSetConditional")) {
    snprintf(fake_conditions_ptx, sizeof fake_conditions_ptx, "%s", text);
    *m = calloc(1, sizeof **m);
    (*m)->count = 1;
    (*m)->f[0] = (function){"decide", "pplllli", k_decide};
    END(OK);
  }
  if (strncmp(text, "FAKE\n", 5)) END(BAD_IMAGE);
  *m = calloc(1, sizeof **m);
  fake_loads++;
  for (text += 5; *text && (*m)->count < 16;) {
    function *f = &(*m)->f[(*m)->count];
    int n = 0;
    if (sscanf(text, "%63s %39s\n%n", f->name, f->kinds, &n) < 2) break;
    text += n;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
      if (!strcmp(kernels[i].name, f->name)) f->run = kernels[i].run;
    if (f->run) (*m)->count++;
  }
  END(OK);
}
API cuModuleUnload(module *m) { BEGIN finish_all(); fake_unloads++; (void)m; END(sticky); }
API cuModuleGetFunction(function **f, module *m, const char *name) {
  for (int i = 0; i < m->count; i++)
    if (!strcmp(m->f[i].name, name)) { *f = &m->f[i]; return OK; }
  return NOT_FOUND;
}
API cuFuncSetAttribute(function *f, int a, int v) {
  (void)f;
  if (a == 8) fake_max_shared = v;
  return (a == 8 && v <= 232448) || (a == 9 && v == 0) ? OK : INVALID;
}
static op launch_op(function *f, unsigned gx, unsigned gy, unsigned gz, void **params) {
  op o = {.kind = LAUNCH, .f = f, .grid = gx * gy * gz};
  for (size_t i = 0; i < strlen(f->kinds); i++)
    memcpy(o.args[i], params[i], strchr("pld", f->kinds[i]) ? 8 : 4);
  return o;
}
API cuLaunchKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, stream *s, void **params, void **extra) {
  (void)extra;
  BEGIN NEED_CONTEXT
  snprintf(fake_last_kernel, sizeof fake_last_kernel, "%s", f->name);
  unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  memcpy(fake_last_grid, grid, sizeof grid);
  memcpy(fake_last_block, block, sizeof block);
  fake_last_shared = shared;
  if (bx * by * bz > 1024) END(701);
  END(push(real(s), launch_op(f, gx, gy, gz, params)));
}

/* graphs: a node is its index + 1. Graphs within run as late as they may: when a node that comes
   after them runs, or at the end, so that a missing edge gives wrong results */
API cuGraphCreate(graph **g, unsigned f) { (void)f; *g = calloc(1, sizeof **g); return OK; }
API cuGraphDestroy(graph *g) { free(g); return OK; }
static CUresult add_node(size_t *node, graph *g, const size_t *deps, size_t n, op o) {
  if (n > 2 || g->count == 256) return INVALID;
  for (size_t i = 0; i < n; i++) {
    if (deps[i] == 0 || deps[i] > (size_t)g->count) return INVALID;
    g->after[g->count][g->waits[g->count]++] = (int)deps[i] - 1;
  }
  g->edges += (int)n;
  g->ops[g->count++] = o;
  *node = (size_t)g->count;
  return OK;
}
API cuGraphConditionalHandleCreate(unsigned long long *h, graph *g, void *c, unsigned preset,
                                   unsigned flags) {
  if (!c || !g || flags != 1 || condition_count == 256) return INVALID;
  conditions[condition_count].preset = preset;
  *h = 1000 + condition_count++;
  return OK;
}
typedef struct {
  int type, reserved[3];
  unsigned long long condition; int loops; unsigned size; graph **bodies; void *context;
} node_params;
API cuGraphAddNode_v2(size_t *node, graph *g, const size_t *d, const void *e, size_t n,
                      node_params *p) {
  if (p->type != 13 || p->size != 1 || e || !p->context || p->condition < 1000) return INVALID;
  graph **body = malloc(sizeof *body);
  *body = calloc(1, sizeof **body);
  p->bodies = body;
  op o = {.kind = BODY, .body = *body, .loops = p->loops, .condition = p->condition};
  return add_node(node, g, d, n, o);
}
typedef struct { unsigned char from, to, type, reserved[5]; } edge_data;
API cuGraphAddDependencies_v2(graph *g, const size_t *from, const size_t *to, const edge_data *e,
                              size_t n) {
  if (n != 1 || to[0] != (size_t)g->count || from[0] >= to[0]) return INVALID;
  g->after[to[0] - 1][g->waits[to[0] - 1]++] = (int)from[0] - 1;
  if (e->type != 1 || e->from != 1 || e->to != 0) return INVALID;
  if (g->ops[from[0] - 1].kind != LAUNCH || g->ops[to[0] - 1].kind != LAUNCH) return INVALID;
  g->edges++;
  fake_early_launches++;
  return OK;
}
static op kernel_op(const kernel_params *p) {
  return launch_op(p->func, p->grid[0], p->grid[1], p->grid[2], p->params);
}
static op fill_op(const memset_params *p) {
  return (op){.kind = FILL, .dst = (void *)p->dst, .value = (int)p->value,
              .bytes = p->width * p->element * p->height};
}
static op copy_op(const memcpy_params *p) {
  return (op){.kind = COPY, .dst = (void *)p->ddev, .src = (void *)p->sdev,
              .bytes = p->width * p->height * p->depth};
}
API cuGraphAddKernelNode_v2(size_t *node, graph *g, const size_t *d, size_t n,
                            const kernel_params *p) { return add_node(node, g, d, n, kernel_op(p)); }
API cuGraphAddMemsetNode(size_t *node, graph *g, const size_t *d, size_t n, const memset_params *p,
                         void *c) { return c ? add_node(node, g, d, n, fill_op(p)) : INVALID; }
API cuGraphAddMemcpyNode(size_t *node, graph *g, const size_t *d, size_t n, const memcpy_params *p,
                         void *c) { return c ? add_node(node, g, d, n, copy_op(p)) : INVALID; }
API cuGraphAddChildGraphNode(size_t *node, graph *g, const size_t *d, size_t n, graph *child) {
  op o = {.kind = CHILD, .body = malloc(sizeof *child)};
  *o.body = *child;
  return add_node(node, g, d, n, o);
}
static int in_order(const graph *g) { /* one node waits for nothing, and one of the graphs within */
  int roots[2] = {0, 0};
  for (int i = 0; i < g->count; i++) {
    if (g->ops[i].kind == BODY && (fake_refuse_loops || !in_order(g->ops[i].body))) return 0;
    if (!g->waits[i]) roots[g->ops[i].kind == CHILD]++;
  }
  return roots[0] <= 1 && roots[1] <= 1;
}
API cuGraphInstantiateWithFlags(graph_exec **e, graph *g, unsigned long long f) {
  (void)f;
  if (!in_order(g)) return INVALID;
  *e = calloc(1, sizeof **e);
  (*e)->g = *g;
  fake_instantiations++;
  return OK;
}
static CUresult update(graph_exec *e, size_t node, op o) {
  if (fake_fail_updates) { fake_fail_updates--; return 910; }
  if (node == 0 || node > (size_t)e->g.count || e->g.ops[node - 1].kind != o.kind) return INVALID;
  e->g.ops[node - 1] = o;
  fake_node_updates++;
  return OK;
}
API cuGraphExecKernelNodeSetParams_v2(graph_exec *e, size_t n, const kernel_params *p) {
  return update(e, n, kernel_op(p));
}
API cuGraphExecMemsetNodeSetParams(graph_exec *e, size_t n, const memset_params *p, void *c) {
  (void)c;
  return update(e, n, fill_op(p));
}
API cuGraphExecMemcpyNodeSetParams(graph_exec *e, size_t n, const memcpy_params *p, void *c) {
  (void)c;
  return update(e, n, copy_op(p));
}
API cuGraphExecChildGraphNodeSetParams(graph_exec *e, size_t n, graph *child) {
  op o = {.kind = CHILD, .body = malloc(sizeof *child)};
  *o.body = *child;
  return update(e, n, o);
}
static void push_copy(stream *s, op o) {
  if (o.kind == LIBRARY) o.staged = memcpy(malloc(o.bytes), o.staged, o.bytes);
  push(s, o);
}
static void push_node(stream *s, const graph *g, int i, char *pushed) {
  if (pushed[i]) return;
  pushed[i] = 1;
  for (int k = 0; k < g->waits[i]; k++) push_node(s, g, g->after[i][k], pushed);
  if (g->ops[i].kind != CHILD) { push_copy(s, g->ops[i]); return; }
  for (int k = 0; k < g->ops[i].body->count; k++) push_copy(s, g->ops[i].body->ops[k]);
}
API cuGraphLaunch(graph_exec *e, stream *s) {
  BEGIN NEED_CONTEXT
  fake_graph_launches++;
  char pushed[256] = {0};
  push(real(s), (op){.kind = PRESET});
  for (int last = 0; last < 2; last++)
    for (int i = 0; i < e->g.count; i++)
      if (last || e->g.ops[i].kind != CHILD) push_node(real(s), &e->g, i, pushed);
  END(sticky);
}
API cuGraphExecDestroy(graph_exec *e) { free(e); return OK; }
