/* Logs unsynced changes of a process so that they can be undone: preloaded (LD_PRELOAD) by the faults that cut power.
 *
 * Before a file below POWER_CUT_ROOT is changed, its old bytes go to an undo log in POWER_CUT_UNDO. Each file and
 * directory has one, named by its inode. A sync that has returned drops the entries from before it began. So the logs of
 * a killed process hold exactly the changes that no sync covers; rollback.py undoes some or all of them. The page
 * POWER_CUT_UNDO/control is shared with the orchestrator. Both folders lie on one file system: a link holds a name that
 * is removed or replaced.
 *
 * Changes of one file are made one at a time, each behind its log entry. A process killed in between has logged a
 * change that it did not make; undoing that changes nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SECTOR 512
#define MAGIC 0x51554e44u
/* Most bytes of one undo log. Beyond it the oldest changes count as durable, as on a disk that wrote them by itself. */
#define LOG_BYTES_MAX ((int64_t)256 << 20)
#define TABLE 4096

enum { WRITE = 1, RESIZE, CREATE, UNLINK, RENAME, MKDIR, RMDIR };

/* rollback.py reads it: struct "=IIqqqqq". Behind the head are the old bytes, or names with zeros behind them. */
struct record {
  uint32_t magic, kind;
  int64_t a; /* write: offset; resize: new size; names: inode that has the name */
  int64_t b; /* write: length; names: number of the link to the removed file, or 0 */
  int64_t old_size;
  int64_t start; /* offset of the following bytes in the file */
  int64_t bytes; /* number of the following bytes */
};

/* control.py reads and writes it: struct "=II9Q". The first two are the orchestrator's. */
struct control {
  uint32_t lie; /* syncs succeed, and cover nothing */
  uint32_t delay_us; /* before each fdatasync, as records are synced; a start waits for many an fsync */
  uint64_t pid, wchar_at_start;
  uint64_t begun, done; /* bytes of all writes, of any kind of file */
  uint64_t changes, syncs, lies, forgotten, resized_unseen;
};

struct file {
  struct file *next;
  ino_t inode;
  int is_ours; /* below the root */
  pthread_mutex_t lock;
  int log, reader;
  int64_t log_begin, log_end; /* counted over all entries ever logged */
  int64_t size;               /* as the last change left it; -1: not known */
};

static char root[4096], undo[4096];
static size_t root_bytes;
static dev_t device;
static struct control *control;
static struct file *table[TABLE];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(result, name, ...) \
  static result (*real_##name)(__VA_ARGS__); \
  if (!real_##name) real_##name = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define ADD(field, n) __atomic_add_fetch(&control->field, (uint64_t)(n), __ATOMIC_SEQ_CST)

static ssize_t plain_write(int file, const void *bytes, size_t count) {
  REAL(ssize_t, write, int, const void *, size_t);
  return real_write(file, bytes, count);
}

static int plain_open(const char *path, int flags) {
  REAL(int, open64, const char *, int, ...);
  return real_open64(path, flags | O_CLOEXEC, 0600);
}

static void fail(const char *what) {
  dprintf(2, "power cut: %s: %s\n", what, strerror(errno));
  abort();
}

static uint64_t written_so_far(void) {
  char text[1024] = "";
  int file = plain_open("/proc/self/io", O_RDONLY);
  if (file < 0 || read(file, text, sizeof text - 1) <= 0) fail("read /proc/self/io");
  close(file);
  const char *line = strstr(text, "wchar: ");
  if (!line) fail("find wchar in /proc/self/io");
  return strtoull(line + 7, NULL, 10);
}

__attribute__((constructor)) static void begin(void) {
  const char *data = getenv("POWER_CUT_ROOT"), *folder = getenv("POWER_CUT_UNDO");
  if (!data || !folder) return;
  snprintf(root, sizeof root, "%s/", data);
  snprintf(undo, sizeof undo, "%s", folder);
  char path[4200];
  snprintf(path, sizeof path, "%s/control", undo);
  int file = plain_open(path, O_RDWR);
  struct stat there;
  if (file < 0 || stat(data, &there) != 0) fail("find its folders");
  device = there.st_dev;
  struct control *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) fail("map its control page");
  close(file);
  memset(&page->pid, 0, sizeof *page - offsetof(struct control, pid));
  page->wchar_at_start = written_so_far();
  page->pid = (uint64_t)getpid();
  root_bytes = strlen(root);
  control = page;
}

/* -- files and their logs ------------------------------------------------------------------------------------------ */

static int is_below(const char *path) { return control && strncmp(path, root, root_bytes) == 0; }

static int is_root(const char *path) {
  return strlen(path) + 1 == root_bytes && strncmp(path, root, root_bytes - 1) == 0;
}

static void log_path(char *path, size_t bytes, ino_t inode) {
  snprintf(path, bytes, "%s/log-%lu", undo, (unsigned long)inode);
}

static void open_log(struct file *file) {
  char path[4200];
  log_path(path, sizeof path, file->inode);
  file->log = plain_open(path, O_RDWR | O_CREAT | O_APPEND);
  struct stat there;
  if (file->log < 0 || fstat(file->log, &there) != 0) fail("open an undo log");
  int64_t end = 0;
  struct record head;
  while (pread(file->log, &head, sizeof head, end) == sizeof head) {
    int64_t next = end + (int64_t)sizeof head + head.bytes;
    if (head.magic != MAGIC || next > there.st_size) break;
    end = next;
  }
  /* The rest was being logged when the process before this one was killed; that change was not made. */
  if (end < there.st_size && ftruncate(file->log, end) != 0) fail("truncate an undo log");
  file->log_end = file->log_begin + end;
}

static struct file *find(ino_t inode, int is_ours) {
  pthread_mutex_lock(&table_lock);
  struct file **place = &table[inode % TABLE];
  while (*place && (*place)->inode != inode) place = &(*place)->next;
  if (!*place && is_ours >= 0) {
    struct file *fresh = calloc(1, sizeof *fresh);
    if (!fresh) fail("allocate");
    fresh->inode = inode;
    fresh->is_ours = is_ours;
    fresh->log = fresh->reader = -1;
    fresh->size = -1;
    pthread_mutex_init(&fresh->lock, NULL);
    *place = fresh;
  }
  struct file *found = *place;
  pthread_mutex_unlock(&table_lock);
  return found;
}

/* Whether a descriptor's file lies below the root, by the name that it was opened by. */
static int names_ours(int descriptor) {
  char link[64], path[4200];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t bytes = readlink(link, path, sizeof path - 1);
  if (bytes < 0) return 0;
  path[bytes] = 0;
  return is_below(path) || is_root(path);
}

/* The file below the root that a descriptor stands for, if any. */
static struct file *file_of(int descriptor, struct stat *there) {
  if (!control || fstat(descriptor, there) != 0 || !S_ISREG(there->st_mode) || there->st_dev != device) return NULL;
  if (there->st_nlink == 0) return NULL; /* no process finds it again */
  struct file *file = find(there->st_ino, -1);
  if (!file) file = find(there->st_ino, names_ours(descriptor));
  return file->is_ours ? file : NULL;
}

static void append(struct file *file, struct record head, const void *bytes) {
  if (file->log < 0) open_log(file);
  size_t total = sizeof head + (size_t)head.bytes;
  if (head.kind <= RESIZE && file->log_end - file->log_begin + (int64_t)total > LOG_BYTES_MAX) {
    if (ftruncate(file->log, 0) != 0) fail("cut an undo log");
    file->log_begin = file->log_end;
    ADD(forgotten, 1);
  }
  char *whole = malloc(total);
  if (!whole) fail("allocate");
  head.magic = MAGIC;
  memcpy(whole, &head, sizeof head);
  memcpy(whole + sizeof head, bytes, (size_t)head.bytes);
  ADD(begun, total);
  if (plain_write(file->log, whole, total) != (ssize_t)total) fail("write an undo log");
  ADD(done, total);
  free(whole);
  file->log_end += (int64_t)total;
  ADD(changes, 1);
}

/* Logs the change `a`, `b` of the bytes from..to, as far as the file has them. */
static void log_bytes(struct file *file, int descriptor, uint32_t kind, int64_t a, int64_t b, int64_t from, int64_t to) {
  struct record head = {0, kind, a, b, file->size, from, 0};
  if (to > file->size) to = file->size;
  char *before = NULL;
  if (to > from) {
    if (file->reader < 0) {
      char path[64];
      snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
      /* A new descriptor: the server's own may be unable to read, or read whole pages only. */
      file->reader = plain_open(path, O_RDONLY);
      if (file->reader < 0) fail("open a file to read what stands there");
    }
    head.bytes = to - from;
    before = malloc((size_t)head.bytes);
    if (!before) fail("allocate");
    for (int64_t at = 0; at < head.bytes;) {
      ssize_t got = pread(file->reader, before + at, (size_t)(head.bytes - at), from + at);
      if (got <= 0) fail("read what stands there");
      at += got;
    }
  }
  append(file, head, before);
  free(before);
}

/* A size that changed past this library (rustix calls the kernel's fallocate itself) is logged when it is noticed. */
static void see_size(struct file *file, int descriptor) {
  struct stat there;
  if (fstat(descriptor, &there) != 0) fail("look at a file");
  if (file->size >= 0 && there.st_size != file->size) {
    if (there.st_size < file->size) fail("a file became shorter past this library");
    struct record head = {0, RESIZE, there.st_size, 0, file->size, 0, 0};
    append(file, head, "");
    ADD(resized_unseen, 1);
  }
  file->size = there.st_size;
}

static void now_has(struct file *file, int descriptor) {
  struct stat there;
  if (fstat(descriptor, &there) == 0) file->size = there.st_size;
}

static void log_write(struct file *file, int descriptor, int64_t offset, int64_t count) {
  see_size(file, descriptor);
  int64_t end = (offset + count + SECTOR - 1) / SECTOR * SECTOR;
  log_bytes(file, descriptor, WRITE, offset, count, offset / SECTOR * SECTOR, end);
}

static void log_resize(struct file *file, int descriptor, int64_t size) {
  see_size(file, descriptor);
  log_bytes(file, descriptor, RESIZE, size, 0, size / SECTOR * SECTOR, INT64_MAX);
}

/* Resets the file to one without a log, as for a new file. Its inode may have been another file's. */
static void reset_file(struct file *file) {
  if (file->log < 0) open_log(file);
  if (ftruncate(file->log, 0) != 0) fail("cut an undo log");
  file->log_begin = file->log_end;
  if (file->reader >= 0) close(file->reader);
  file->reader = -1;
  file->size = 0;
  file->is_ours = 1;
}

static void held_path(char *path, size_t bytes, int64_t number) {
  snprintf(path, bytes, "%s/held-%ld", undo, (long)number);
}

/* Drops the links to removed files that a sync covers now. */
static void let_go(struct file *file, int64_t bytes) {
  REAL(int, unlink, const char *);
  struct record head;
  for (int64_t at = 0; at < bytes; at += (int64_t)sizeof head + head.bytes) {
    if (pread(file->log, &head, sizeof head, at) != sizeof head) fail("read an undo log");
    if (head.kind < CREATE || head.b == 0) continue;
    char path[4200];
    held_path(path, sizeof path, head.b);
    struct stat there;
    int is_last = lstat(path, &there) == 0 && there.st_nlink == 1;
    real_unlink(path);
    if (!is_last) continue;
    log_path(path, sizeof path, there.st_ino);
    struct file *gone = find(there.st_ino, -1);
    if (!gone) {
      real_unlink(path);
      continue;
    }
    pthread_mutex_lock(&gone->lock);
    reset_file(gone);
    pthread_mutex_unlock(&gone->lock);
  }
}

static void drop_before(struct file *file, int64_t mark) {
  int64_t covered = mark - file->log_begin;
  if (covered <= 0) return;
  let_go(file, covered);
  int64_t left = file->log_end - mark;
  if (left == 0) {
    if (ftruncate(file->log, 0) != 0) fail("cut an undo log");
  } else {
    char path[4200], beside[4300];
    log_path(path, sizeof path, file->inode);
    snprintf(beside, sizeof beside, "%s-new", path);
    int fresh = plain_open(beside, O_RDWR | O_CREAT | O_TRUNC | O_APPEND);
    char *rest = malloc((size_t)left);
    if (fresh < 0 || !rest || pread(file->log, rest, (size_t)left, covered) != left) fail("shorten an undo log");
    ADD(begun, left);
    if (plain_write(fresh, rest, (size_t)left) != left) fail("shorten an undo log");
    ADD(done, left);
    free(rest);
    REAL(int, rename, const char *, const char *);
    if (real_rename(beside, path) != 0) fail("shorten an undo log");
    close(file->log);
    file->log = fresh;
  }
  file->log_begin = mark;
}

/* -- writes -------------------------------------------------------------------------------------------------------- */

/* Every write of any kind is counted, so that the orchestrator notices writes past this library. */
#define COUNTED(count, call) ({ \
    if (control) ADD(begun, count); \
    ssize_t wrote = (call); \
    int kept = errno; \
    if (control) { \
      if (wrote < (ssize_t)(count)) ADD(begun, (wrote > 0 ? wrote : 0) - (ssize_t)(count)); \
      if (wrote > 0) ADD(done, wrote); \
    } \
    errno = kept; \
    wrote; \
  })

#define CHANGED(descriptor, position, count, call) ({ \
    struct stat there; \
    struct file *file = file_of(descriptor, &there); \
    ssize_t result; \
    if (file) { \
      pthread_mutex_lock(&file->lock); \
      log_write(file, descriptor, (position), (int64_t)(count)); \
      result = COUNTED(count, call); \
      int error = errno; \
      now_has(file, descriptor); \
      pthread_mutex_unlock(&file->lock); \
      errno = error; \
    } else { \
      result = COUNTED(count, call); \
    } \
    result; \
  })

static int64_t position_of(int descriptor) {
  int flags = fcntl(descriptor, F_GETFL);
  struct stat there;
  if (flags >= 0 && flags & O_APPEND && fstat(descriptor, &there) == 0) return there.st_size;
  return lseek(descriptor, 0, SEEK_CUR);
}

static size_t sum(const struct iovec *parts, int count) {
  size_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += parts[i].iov_len;
  return bytes;
}

ssize_t write(int f, const void *bytes, size_t count) {
  return CHANGED(f, position_of(f), count, plain_write(f, bytes, count));
}

ssize_t writev(int f, const struct iovec *parts, int count) {
  REAL(ssize_t, writev, int, const struct iovec *, int);
  return CHANGED(f, position_of(f), sum(parts, count), real_writev(f, parts, count));
}

ssize_t pwrite64(int f, const void *bytes, size_t count, off64_t at) {
  REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
  return CHANGED(f, at, count, real_pwrite64(f, bytes, count, at));
}

ssize_t pwrite(int f, const void *bytes, size_t count, off_t at) { return pwrite64(f, bytes, count, at); }

ssize_t pwritev64(int f, const struct iovec *parts, int count, off64_t at) {
  REAL(ssize_t, pwritev64, int, const struct iovec *, int, off64_t);
  return CHANGED(f, at, sum(parts, count), real_pwritev64(f, parts, count, at));
}

ssize_t pwritev(int f, const struct iovec *parts, int count, off_t at) { return pwritev64(f, parts, count, at); }

ssize_t pwritev64v2(int f, const struct iovec *parts, int count, off64_t at, int flags) {
  REAL(ssize_t, pwritev64v2, int, const struct iovec *, int, off64_t, int);
  if (flags & (RWF_DSYNC | RWF_SYNC | RWF_APPEND)) fail("writes that sync or append are not known here");
  return CHANGED(f, at == -1 ? position_of(f) : at, sum(parts, count), real_pwritev64v2(f, parts, count, at, flags));
}

ssize_t pwritev2(int f, const struct iovec *parts, int count, off_t at, int flags) {
  return pwritev64v2(f, parts, count, at, flags);
}

int ftruncate64(int f, off64_t size) {
  REAL(int, ftruncate64, int, off64_t);
  struct stat there;
  struct file *file = file_of(f, &there);
  if (!file) return real_ftruncate64(f, size);
  pthread_mutex_lock(&file->lock);
  log_resize(file, f, size);
  int result = real_ftruncate64(f, size), error = errno;
  now_has(file, f);
  pthread_mutex_unlock(&file->lock);
  errno = error;
  return result;
}

int ftruncate(int f, off_t size) { return ftruncate64(f, size); }

int fallocate64(int f, int mode, off64_t at, off64_t count) {
  REAL(int, fallocate64, int, int, off64_t, off64_t);
  struct stat there;
  struct file *file = file_of(f, &there);
  if (!file) return real_fallocate64(f, mode, at, count);
  if (mode != 0) fail("fallocate with a mode is not known here");
  pthread_mutex_lock(&file->lock);
  see_size(file, f);
  int result = real_fallocate64(f, mode, at, count), error = errno;
  see_size(file, f);
  pthread_mutex_unlock(&file->lock);
  errno = error;
  return result;
}

int fallocate(int f, int mode, off_t at, off_t count) { return fallocate64(f, mode, at, count); }

int posix_fallocate64(int f, off64_t at, off64_t count) { return fallocate64(f, 0, at, count) == 0 ? 0 : errno; }

int posix_fallocate(int f, off_t at, off_t count) { return posix_fallocate64(f, at, count); }

/* -- syncs --------------------------------------------------------------------------------------------------------- */

static int synced(int f, int (*real)(int), useconds_t delay_us) {
  struct stat there;
  struct file *file = file_of(f, &there);
  if (!file && control && fstat(f, &there) == 0 && S_ISDIR(there.st_mode) && there.st_dev == device && names_ours(f))
    file = find(there.st_ino, 1);
  if (!file) return real(f);
  pthread_mutex_lock(&file->lock);
  if (file->log < 0) open_log(file); /* a process before this one may have left some */
  int64_t mark = file->log_end;
  pthread_mutex_unlock(&file->lock);
  if (delay_us) usleep(delay_us);
  int result = real(f), error = errno;
  ADD(syncs, 1);
  if (control->lie) {
    ADD(lies, 1);
  } else if (result == 0) {
    pthread_mutex_lock(&file->lock);
    drop_before(file, mark);
    pthread_mutex_unlock(&file->lock);
  }
  errno = error;
  return result;
}

int fdatasync(int f) {
  REAL(int, fdatasync, int);
  return synced(f, real_fdatasync, control ? control->delay_us : 0);
}

int fsync(int f) {
  REAL(int, fsync, int);
  return synced(f, real_fsync, 0);
}

/* -- names --------------------------------------------------------------------------------------------------------- */

struct name {
  char folder[4200], last[256];
  struct file *parent;
  struct stat there; /* the file with the name; st_nlink is 0 without one */
};

/* Takes a path apart, with its directory locked; false if it is not below the root. */
static int take(struct name *name, int at, const char *path) {
  if (!control) return 0;
  char whole[4200], base[4096] = "";
  if (path[0] == '/') {
    snprintf(whole, sizeof whole, "%s", path);
  } else {
    char link[64];
    snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
    ssize_t bytes = readlink(link, base, sizeof base - 1);
    if (bytes < 0) return 0;
    base[bytes] = 0;
    if (snprintf(whole, sizeof whole, "%s/%s", base, path) >= (int)sizeof whole) return 0;
  }
  size_t bytes = strlen(whole);
  while (bytes > 1 && whole[bytes - 1] == '/') whole[--bytes] = 0;
  if (!is_below(whole)) return 0;
  if (strstr(whole, "/../") || strstr(whole, "/./")) fail("paths with dots are not known here");
  char *slash = strrchr(whole, '/');
  *slash = 0;
  snprintf(name->folder, sizeof name->folder, "%s", whole);
  snprintf(name->last, sizeof name->last, "%s", slash + 1);
  struct stat folder;
  if (stat(name->folder, &folder) != 0) return 0;
  if (folder.st_dev != device) fail("its folder lies on another file system");
  name->parent = find(folder.st_ino, 1);
  pthread_mutex_lock(&name->parent->lock);
  *slash = '/';
  if (lstat(whole, &name->there) != 0) name->there.st_nlink = 0;
  return 1;
}

static void leave(struct name *name) {
  int error = errno;
  pthread_mutex_unlock(&name->parent->lock);
  errno = error;
}

/* Makes a link to a name's file and answers its number: it stays when the name is gone. */
static int64_t hold(const struct name *name) {
  static int64_t last;
  char path[4600], held[4200];
  snprintf(path, sizeof path, "%s/%s", name->folder, name->last);
  for (;;) {
    int64_t number = __atomic_add_fetch(&last, 1, __ATOMIC_SEQ_CST);
    held_path(held, sizeof held, number);
    if (linkat(AT_FDCWD, path, AT_FDCWD, held, 0) == 0) return number;
    if (errno != EEXIST) fail("hold a file whose name goes");
  }
}

static void log_name(struct name *name, uint32_t kind, int64_t held, const char *to) {
  char names[4800];
  int bytes = snprintf(names, sizeof names, "%s%c%s%c%s", name->folder, 0, name->last, 0, to) + 1;
  struct record head = {0, kind, name->there.st_nlink ? (int64_t)name->there.st_ino : 0, held, 0, 0, bytes};
  append(name->parent, head, names);
}

static int open_counted(int at, const char *path, int flags, mode_t mode) {
  REAL(int, openat64, int, const char *, int, ...);
  struct name name;
  if (is_below(path) && flags & O_DSYNC) fail("files that sync with each write are not known here");
  if (!(flags & (O_CREAT | O_TRUNC)) || !take(&name, at, path)) return real_openat64(at, path, flags, mode);
  if ((flags & O_TMPFILE) == O_TMPFILE) fail("files without a name are not known here");
  int is_there = name.there.st_nlink != 0, is_cut = is_there && flags & O_TRUNC && S_ISREG(name.there.st_mode);
  struct file *file = NULL;
  if (!is_there && flags & O_CREAT) log_name(&name, CREATE, 0, "");
  if (is_cut) {
    file = find(name.there.st_ino, 1);
    pthread_mutex_lock(&file->lock);
    char whole[4600];
    snprintf(whole, sizeof whole, "%s/%s", name.folder, name.last);
    int before = plain_open(whole, O_RDONLY);
    if (before < 0) fail("open a file that is to be cut");
    log_resize(file, before, 0);
    close(before);
  }
  int result = real_openat64(at, path, flags, mode), error = errno;
  struct stat there;
  if (result >= 0 && !is_there && fstat(result, &there) == 0) {
    file = find(there.st_ino, 1);
    pthread_mutex_lock(&file->lock);
    reset_file(file);
  }
  if (is_cut && result >= 0) now_has(file, result);
  if (file) pthread_mutex_unlock(&file->lock);
  errno = error;
  leave(&name);
  return result;
}

#define MODE_OF(flags) ({ \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
      va_list more; \
      va_start(more, flags); \
      mode = va_arg(more, mode_t); \
      va_end(more); \
    } \
    mode; \
  })

int open64(const char *path, int flags, ...) { return open_counted(AT_FDCWD, path, flags, MODE_OF(flags)); }
int open(const char *path, int flags, ...) { return open_counted(AT_FDCWD, path, flags, MODE_OF(flags)); }
int openat64(int at, const char *path, int flags, ...) { return open_counted(at, path, flags, MODE_OF(flags)); }
int openat(int at, const char *path, int flags, ...) { return open_counted(at, path, flags, MODE_OF(flags)); }
int creat64(const char *path, mode_t mode) { return open_counted(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat(const char *path, mode_t mode) { return creat64(path, mode); }

int renameat(int at, const char *from, int to_at, const char *to) {
  REAL(int, renameat, int, const char *, int, const char *);
  struct name old, target;
  if (!take(&old, at, from)) return real_renameat(at, from, to_at, to);
  leave(&old);
  if (!take(&target, to_at, to)) fail("a file leaves its folder");
  if (target.parent != old.parent) fail("a file moves to another folder, which is not known here");
  int64_t held = target.there.st_nlink && target.there.st_ino != old.there.st_ino ? hold(&target) : 0;
  if (old.there.st_nlink) {
    struct name both = old;
    log_name(&both, RENAME, held, target.last);
  }
  int result = real_renameat(at, from, to_at, to);
  leave(&target);
  return result;
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int unlinkat(int at, const char *path, int flags) {
  REAL(int, unlinkat, int, const char *, int);
  struct name name;
  if (!take(&name, at, path)) return real_unlinkat(at, path, flags);
  if (name.there.st_nlink && !(flags & AT_REMOVEDIR) && !S_ISDIR(name.there.st_mode)) {
    log_name(&name, UNLINK, hold(&name), "");
  } else if (name.there.st_nlink && flags & AT_REMOVEDIR) {
    log_name(&name, RMDIR, 0, "");
  }
  int result = real_unlinkat(at, path, flags);
  leave(&name);
  return result;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int at, const char *path, mode_t mode) {
  REAL(int, mkdirat, int, const char *, mode_t);
  struct name name;
  if (!take(&name, at, path)) return real_mkdirat(at, path, mode);
  if (!name.there.st_nlink) log_name(&name, MKDIR, 0, "");
  int result = real_mkdirat(at, path, mode), error = errno;
  char whole[4600];
  snprintf(whole, sizeof whole, "%s/%s", name.folder, name.last);
  struct stat made;
  if (result == 0 && stat(whole, &made) == 0) {
    struct file *folder = find(made.st_ino, 1);
    pthread_mutex_lock(&folder->lock);
    reset_file(folder);
    pthread_mutex_unlock(&folder->lock);
  }
  errno = error;
  leave(&name);
  return result;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
