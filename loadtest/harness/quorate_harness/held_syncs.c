/* Holds up the syncs of one process of many that share this library (LD_PRELOAD): by a known time each, or for as long as
 * the file says so. HELD_SYNCS_FILE holds the process's id and the microseconds, two 32-bit integers that may change at
 * any time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

struct held {
  uint32_t pid;
  uint32_t delay_us; /* UINT32_MAX: until it changes */
};

static volatile const struct held *held;

__attribute__((constructor)) static void map_file(void) {
  const char *path = getenv("HELD_SYNCS_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof(struct held), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) held = mapped;
}

static uint64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void wait_while_held(void) {
  uint64_t begun_us = now_us();
  while (held && held->pid == (uint32_t)getpid() &&
         (held->delay_us == UINT32_MAX || now_us() - begun_us < held->delay_us))
    usleep(1000);
}

int fdatasync(int file) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  wait_while_held();
  return real(file);
}

int fsync(int file) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  wait_while_held();
  return real(file);
}
