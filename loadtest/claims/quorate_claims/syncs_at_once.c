/* Time of several syncs at once: N processes write a page each and sync it, all at the same moment.
 *
 * cc -O2 syncs_at_once.c && ./a.out FOLDER N ROUNDS   prints the median of the longest of the N, in microseconds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 1024, PROCESSES_MAX = 8, ROUNDS_MAX = 10000 };

struct shared {
    pthread_barrier_t barrier;
    double took_us[PROCESSES_MAX];
};

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s FOLDER PROCESSES ROUNDS\n", argv[0]);
        return 2;
    }
    int processes = atoi(argv[2]), rounds = atoi(argv[3]);
    if (processes < 1 || processes > PROCESSES_MAX || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "1 to %d processes, 1 to %d rounds\n", PROCESSES_MAX, ROUNDS_MAX);
        return 2;
    }
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) fail("mmap");
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, processes);

    int me = 0;
    for (int n = 1; n < processes; n++) {
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (child == 0) {
            me = n;
            break;
        }
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/sync-%d", argv[1], me);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (file < 0) fail(path);
    void *page;
    if (posix_memalign(&page, PAGE, PAGE) != 0) fail("memory");
    memset(page, 7, PAGE);
    /* Written through, so that no sync changes metadata: as the journal's segments are. */
    for (int n = 0; n < PAGES; n++)
        if (pwrite(file, page, PAGE, (off_t)n * PAGE) != PAGE) fail("write");
    fsync(file);

    static double longest[ROUNDS_MAX];
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&shared->barrier);
        double begun = now_us();
        if (pwrite(file, page, PAGE, (off_t)(round % PAGES) * PAGE) != PAGE || fdatasync(file) != 0) fail("sync");
        shared->took_us[me] = now_us() - begun;
        pthread_barrier_wait(&shared->barrier);
        for (int n = 0; n < processes; n++)
            if (shared->took_us[n] > longest[round]) longest[round] = shared->took_us[n];
    }
    unlink(path);
    if (me != 0) return 0;
    while (wait(NULL) > 0) {}
    qsort(longest, rounds, sizeof *longest, ascending);
    printf("%.1f\n", longest[rounds / 2]);
    return 0;
}
