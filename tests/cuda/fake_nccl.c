/* NCCL without devices: collectives are work of the fake driver's streams, which waits for that of the
   other members. A member that never comes ends the process, after a while. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stream stream;
typedef struct { char bytes[128]; } unique_id;
extern int fake_enqueue(stream *, void (*)(void *), const void *, size_t);
extern int fake_current_device(void), fake_progress(int);
extern void fake_yield(void);

enum { MOST = 16, CALLS = 64, QUEUE = 4096 };
typedef enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, SEND, RECEIVE } kind;

typedef struct comm comm;
typedef struct { char id[128]; int size; comm *members[MOST]; volatile int aborted; } group;
typedef struct { char *data; size_t n; } message;
struct comm {
  group *g;
  int rank, device;
  long executed;
  message given[QUEUE];                      /* what it brought to each collective */
  message sent[MOST][QUEUE];                 /* to each member */
  long sends[MOST], received[MOST];
};
typedef struct { kind kind; comm *c; const void *in; void *out; size_t count; int type, op, peer;
                 long number; } call;
typedef struct { int count; call calls[CALLS]; } batch;

/* what tests read and set */
int fake_nccl_launches = 0, fake_nccl_calls = 0, fake_nccl_most_together = 0, fake_nccl_aborts = 0;
int fake_nccl_fail = 0; /* the next call gives this status */
int fake_nccl_most_programs = 0;

static group groups[64];
static int group_count = 0, ids = 0;
static __thread int depth = 0, split_count = 0;
static __thread batch pending;
static __thread stream *pending_stream;
static __thread struct { comm *c; int color, key; comm **out; } splits[MOST];

static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

static void wait_for(comm *c, comm *peer, int (*there)(comm *, comm *, long), long what) {
  for (long turns = 0; !there(c, peer, what) && !c->g->aborted; turns++) {
    if (fake_progress(peer->device)) continue;
    if (turns > 100000) { fprintf(stderr, "rank %d waits for %d\n", c->rank, peer->rank); abort(); }
    fake_yield();
  }
}
static int has_given(comm *c, comm *peer, long n) { (void)c; return peer->executed > n; }
static int has_sent(comm *c, comm *peer, long n) { return peer->sends[c->rank] > n; }

static float of_half(uint16_t bits) { _Float16 h; memcpy(&h, &bits, 2); return (float)h; }
static uint16_t to_half(float x) {
  _Float16 h = (_Float16)x;
  uint16_t bits;
  memcpy(&bits, &h, 2);
  return bits;
}
static float of_bfloat(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float x;
  memcpy(&x, &wide, 4);
  return x;
}
static uint16_t to_bfloat(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
#define FOLD(a, b) (op == 0 ? (a) + (b) : op == 1 ? (a) * (b) : op == 2 ? ((a) > (b) ? (a) : (b)) \
                                                             : ((a) < (b) ? (a) : (b)))
#define EACH(T) for (size_t i = 0; i < n; i++) ((T *)out)[i] = (T)FOLD(((T *)out)[i], ((T *)in)[i])
#define NARROW(of, to) for (size_t i = 0; i < n; i++) { float a = of(((uint16_t *)out)[i]), \
  b = of(((uint16_t *)in)[i]); ((uint16_t *)out)[i] = to(FOLD(a, b)); }
static void fold(void *out, const void *in, size_t n, int type, int op) {
  switch (type) {
    case 0: EACH(int8_t); break;
    case 1: EACH(uint8_t); break;
    case 2: EACH(int32_t); break;
    case 3: EACH(uint32_t); break;
    case 4: EACH(int64_t); break;
    case 5: EACH(uint64_t); break;
    case 6: NARROW(of_half, to_half) break;
    case 7: EACH(float); break;
    case 8: EACH(double); break;
    case 9: NARROW(of_bfloat, to_bfloat) break;
  }
}

static size_t given_by(const call *o) {
  return o->count * sizes[o->type] * (o->kind == REDUCE_SCATTER ? o->c->g->size : 1);
}
static void give_input(call *o) {
  comm *c = o->c;
  size_t n = given_by(o);
  o->number = c->executed;
  c->given[o->number] = (message){malloc(n + 1), n};
  memcpy(c->given[o->number].data, o->in, n);
  c->executed++;
}
static void take_output(const call *o) {
  comm *c = o->c;
  group *g = c->g;
  size_t bytes = o->count * sizes[o->type], n = given_by(o);
  long number = o->number;
  for (int q = 0; q < g->size; q++) wait_for(c, g->members[q], has_given, number);
  if (g->aborted) return;
  for (int q = 0; q < g->size; q++) {
    const char *in = g->members[q]->given[number].data;
    if (g->members[q]->given[number].n != n) { fprintf(stderr, "sizes differ\n"); abort(); }
    switch (o->kind) {
      case ALL_REDUCE:
      case REDUCE_SCATTER:
        if (o->kind == REDUCE_SCATTER) in += bytes * c->rank;
        if (q == 0) memcpy(o->out, in, bytes); else fold(o->out, in, o->count, o->type, o->op);
        break;
      case ALL_GATHER: memcpy((char *)o->out + bytes * q, in, bytes); break;
      case BROADCAST: if (q == o->peer) memcpy(o->out, in, bytes); break;
      default: break;
    }
  }
}
static void run_batch(void *argument) {
  batch *b = argument;
  for (int i = 0; i < b->count; i++) { /* what is given is under way before anything is taken */
    call *o = &b->calls[i];
    if (o->kind != SEND && o->kind != RECEIVE) give_input(o);
    if (o->kind != SEND) continue;
    message m = {malloc(o->count + 1), o->count};
    memcpy(m.data, o->in, o->count);
    o->c->sent[o->peer][o->c->sends[o->peer]++] = m;
  }
  for (int i = 0; i < b->count; i++) {
    call *o = &b->calls[i];
    if (o->kind == SEND) continue;
    if (o->kind != RECEIVE) { take_output(o); continue; }
    comm *peer = o->c->g->members[o->peer];
    long number = o->c->received[o->peer]++;
    wait_for(o->c, peer, has_sent, number);
    if (!o->c->g->aborted) memcpy(o->out, peer->sent[o->c->rank][number].data, o->count);
  }
}

#define API __attribute__((visibility("default")))
API const char *ncclGetErrorString(int r) { return r == 5 ? "invalid usage" : "unhandled error"; }
API const char *ncclGetLastError(comm *c) { (void)c; return fake_nccl_fail ? "a cable is loose" : ""; }
API int ncclGetUniqueId(unique_id *id) {
  memset(id, 0, sizeof *id);
  snprintf(id->bytes, sizeof id->bytes, "id %d", ++ids);
  return 0;
}
static comm *joined(group *g, int rank, int device) {
  comm *c = calloc(1, sizeof *c);
  *c = (comm){.g = g, .rank = rank, .device = device};
  g->members[rank] = c;
  return c;
}
API int ncclCommInitRank(comm **c, int size, unique_id id, int rank) {
  group *g = NULL;
  for (int i = 0; i < group_count; i++)
    if (!memcmp(groups[i].id, id.bytes, 128)) g = &groups[i];
  if (!g) {
    g = &groups[group_count++];
    memcpy(g->id, id.bytes, 128);
    g->size = size;
  }
  *c = joined(g, rank, fake_current_device());
  return 0;
}
typedef struct { size_t size; unsigned magic, version; int blocking, cluster, least, most; } config;
API int ncclCommSplit(comm *c, int color, int key, comm **out, const config *given) {
  if (given && given->magic != 0xcafebeef) return 4;
  fake_nccl_most_programs = given ? given->most : 0;
  splits[split_count].c = c;
  splits[split_count].color = color;
  splits[split_count].key = key;
  splits[split_count++].out = out;
  return depth ? 0 : 5;
}
API int ncclCommUserRank(comm *c, int *rank) { *rank = c->rank; return 0; }
API int ncclCommCount(comm *c, int *size) { *size = c->g->size; return 0; }
API int ncclCommAbort(comm *c) { c->g->aborted = 1; fake_nccl_aborts++; return 0; }
API int ncclGroupStart(void) { depth++; return 0; }
API int ncclGroupEnd(void) {
  if (--depth) return 0;
  for (int i = 0; i < split_count; i++) { /* members of one color, by their keys */
    int size = 0, rank = 0, first = i;
    for (int j = 0; j < split_count; j++) {
      if (splits[j].color != splits[i].color || splits[j].c->g != splits[i].c->g) continue;
      size++;
      rank += splits[j].key < splits[i].key;
      if (j < first) first = j;
    }
    group *g = first == i ? &groups[group_count++] : (*splits[first].out)->g;
    g->size = size;
    *splits[i].out = joined(g, rank, splits[i].c->device);
  }
  split_count = 0;
  if (!pending.count) return 0;
  fake_nccl_launches++;
  if (pending.count > fake_nccl_most_together) fake_nccl_most_together = pending.count;
  int r = fake_enqueue(pending_stream, run_batch, &pending, sizeof pending) ? 1 : 0;
  pending.count = 0;
  return r;
}
static int give(call o, stream *s) {
  if (fake_nccl_fail) { pending.count = 0; return fake_nccl_fail; }
  if (!depth || pending.count == CALLS) return 5;
  fake_nccl_calls++;
  pending_stream = s;
  pending.calls[pending.count++] = o;
  return 0;
}
API int ncclAllReduce(const void *in, void *out, size_t n, int type, int op, comm *c, stream *s) {
  return give((call){ALL_REDUCE, c, in, out, n, type, op, 0}, s);
}
API int ncclAllGather(const void *in, void *out, size_t n, int type, comm *c, stream *s) {
  return give((call){ALL_GATHER, c, in, out, n, type, 0, 0}, s);
}
API int ncclReduceScatter(const void *in, void *out, size_t n, int type, int op, comm *c, stream *s) {
  return give((call){REDUCE_SCATTER, c, in, out, n, type, op, 0}, s);
}
API int ncclBroadcast(const void *in, void *out, size_t n, int type, int root, comm *c, stream *s) {
  return give((call){BROADCAST, c, in, out, n, type, 0, root}, s);
}
API int ncclSend(const void *in, size_t n, int type, int peer, comm *c, stream *s) {
  return give((call){SEND, c, in, 0, n, type, 0, peer}, s);
}
API int ncclRecv(void *out, size_t n, int type, int peer, comm *c, stream *s) {
  return give((call){RECEIVE, c, 0, out, n, type, 0, peer}, s);
}
