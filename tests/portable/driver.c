// Calls functions by number for whoever writes to the standard input, until that ends.
//
// A call is the number of the function, the count of its arguments, and the arguments: a size of at
// least 0 and so many bytes, or -1 and an integer. The answer is the function's result and the bytes
// of the arguments, as the function has left them. All integers have 64 bits.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

enum { MOST = 4096 };
typedef struct {
  long long number;
  void *data;
} ft_argument;

// Memory that ends where a page does that nobody may touch, where the system has such pages.
static void *room(long long bytes) {
#ifdef __linux__
  const long long page = sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
  char *at = mmap(0, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED || mprotect(at + whole, page, PROT_NONE)) exit(3);
  return at + whole - bytes;
#else
  return malloc(bytes + 1);
#endif
}

static void drop(char *data, long long bytes) {
#ifdef __linux__
  const long long page = sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
  munmap(data + bytes - whole, whole + page);
#else
  free(data);
#endif
}

static void take(void *to, long long bytes) {
  if (bytes && fread(to, bytes, 1, stdin) != 1) exit(2);
}

int main(void) {
  static long long head[2], sizes[MOST];
  static ft_argument given[MOST];
  while (fread(head, sizeof head, 1, stdin) == 1) {
    if (head[1] > MOST) exit(4);
    for (int i = 0; i < head[1]; i++) {
      take(sizes + i, 8);
      if (sizes[i] < 0) {
        take(&given[i].number, 8);
      } else {
        given[i].data = room(sizes[i]);
        take(given[i].data, sizes[i]);
      }
    }
    const long long result = ft_call((int)head[0], given);
    fwrite(&result, 8, 1, stdout);
    for (int i = 0; i < head[1]; i++)
      if (sizes[i] >= 0) {
        if (sizes[i]) fwrite(given[i].data, sizes[i], 1, stdout);
        drop(given[i].data, sizes[i]);
      }
    fflush(stdout);
  }
  return 0;
}
