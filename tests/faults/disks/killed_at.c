/* Loaded before libc (LD_PRELOAD): kills the process after an operation on a disk, by its number. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile int left;

/* From now on, the process ends after so many operations; 0 for never. */
void kill_at(int operations) { left = operations; }

static void count(void)
{
    if (left > 0 && __sync_sub_and_fetch(&left, 1) == 0)
        kill(getpid(), SIGKILL);
}

static void count_on(int file)
{
    struct stat found;
    if (left > 0 && fstat(file, &found) == 0 && (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode)))
        count();
}

#define LIBC(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define COUNTED(type, name, parameters, arguments, counted) \
    type name parameters                                    \
    {                                                       \
        type result = LIBC(name) arguments;                 \
        counted;                                            \
        return result;                                      \
    }

COUNTED(int, mkdir, (const char *path, mode_t mode), (path, mode), count())
COUNTED(int, rename, (const char *from, const char *to), (from, to), count())
COUNTED(int, unlink, (const char *path), (path), count())
COUNTED(int, ftruncate64, (int file, off64_t size), (file, size), count_on(file))
COUNTED(int, fsync, (int file), (file), count_on(file))
COUNTED(int, fdatasync, (int file), (file), count_on(file))
COUNTED(ssize_t, write, (int file, const void *from, size_t size), (file, from, size), count_on(file))
COUNTED(ssize_t, pwrite64, (int file, const void *from, size_t size, off64_t at), (file, from, size, at), count_on(file))
COUNTED(ssize_t, writev, (int file, const struct iovec *from, int parts), (file, from, parts), count_on(file))

int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int file = LIBC(open64)(path, flags, va_arg(rest, mode_t));
    va_end(rest);
    if (flags & O_CREAT)
        count_on(file);
    return file;
}
