/* Preloaded into a broker: writes and syncs of files take SLOW_DISK_MS longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

static void wait_for_disk(void)
{
    static long ms = -1;
    if (ms < 0) {
        const char *text = getenv("SLOW_DISK_MS");
        ms = text ? atol(text) : 0;
    }
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

#define SLOW(result, name, parameters, arguments)                          \
    result name parameters                                                 \
    {                                                                      \
        static result(*next) parameters;                                   \
        if (!next)                                                         \
            next = (result(*) parameters)dlsym(RTLD_NEXT, #name);          \
        wait_for_disk();                                                   \
        return next arguments;                                             \
    }

SLOW(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
SLOW(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
SLOW(ssize_t, pwritev, (int fd, const struct iovec *data, int count, off_t at), (fd, data, count, at))
SLOW(ssize_t, pwritev64, (int fd, const struct iovec *data, int count, off64_t at), (fd, data, count, at))
SLOW(int, fsync, (int fd), (fd))
SLOW(int, fdatasync, (int fd), (fd))
