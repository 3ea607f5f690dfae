/* Preloaded into a broker: makes its disk slow while it runs.
 *
 * SLOW_DISK names a file that holds a `struct disk`, which another process changes (disk.py). It is about regular files
 * whose path contains `stalled`. Each write and sync takes every_ms longer, or until every_ms is 0. The next one takes
 * stall_ms longer. If `fails` is set each one ends with EIO. `waiting` counts those in every_ms.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 10 };

struct disk {
    _Atomic int every_ms;
    _Atomic int stall_ms;
    _Atomic int fails;
    _Atomic int waiting;
    char stalled[240];
};

static struct disk *disk;

__attribute__((constructor)) static void open_disk(void)
{
    const char *path = getenv("SLOW_DISK");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED)
        disk = mapped;
    if (fd >= 0)
        close(fd);
}

static void wait_ms(int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static void wait_while_slow(int ms)
{
    disk->waiting++;
    for (; ms > 0 && disk->every_ms; ms -= STEP_MS)
        wait_ms(ms < STEP_MS ? ms : STEP_MS);
    disk->waiting--;
}

static int is_stalled(int fd)
{
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = 0;
    return strstr(path, disk->stalled) != NULL;
}

static int wait_for_disk(int fd)
{
    struct stat status;
    if (!disk || (!disk->every_ms && !disk->stall_ms && !disk->fails) || fstat(fd, &status) ||
        !S_ISREG(status.st_mode) || !is_stalled(fd))
        return 0;
    wait_while_slow(disk->every_ms);
    wait_ms(atomic_exchange(&disk->stall_ms, 0));
    return disk->fails;
}

#define SLOW(result, name, parameters, arguments)                          \
    result name parameters                                                 \
    {                                                                      \
        static result(*next) parameters;                                   \
        if (!next)                                                         \
            next = (result(*) parameters)dlsym(RTLD_NEXT, #name);          \
        if (wait_for_disk(fd)) {                                           \
            errno = EIO;                                                   \
            return -1;                                                     \
        }                                                                  \
        return next arguments;                                             \
    }

SLOW(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
SLOW(ssize_t, writev, (int fd, const struct iovec *data, int count), (fd, data, count))
SLOW(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
SLOW(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
SLOW(ssize_t, pwritev, (int fd, const struct iovec *data, int count, off_t at), (fd, data, count, at))
SLOW(ssize_t, pwritev64, (int fd, const struct iovec *data, int count, off64_t at), (fd, data, count, at))
SLOW(int, fsync, (int fd), (fd))
SLOW(int, fdatasync, (int fd), (fd))
