/* A known delay before each fdatasync of a process: preloaded (LD_PRELOAD) by the claim `syncs`, and by nothing else.
 * The file named by SLOW_SYNC_FILE holds the microseconds, as a 32-bit integer that may change at any time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile const uint32_t *delay_us;

__attribute__((constructor)) static void map_delay(void) {
  const char *path = getenv("SLOW_SYNC_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof(uint32_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) delay_us = mapped;
}

int fdatasync(int file) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  if (delay_us && *delay_us) usleep(*delay_us);
  return real(file);
}
