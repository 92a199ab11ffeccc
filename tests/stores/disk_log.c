/* Notes what a process does to the files of one folder, in the order in which a disk hears of it.
 *
 * Preloaded. LOG_FOLDER is the folder, LOG_FILE where the notes go, outside of it. A write is noted before it is done and
 * a sync when it has been done: whatever is between the two may be lost with the power.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct head { int64_t what, path, offset, size; };

static void note(char what, const char *path, int64_t offset, const void *data, int64_t size) {
    const char *folder = getenv("LOG_FOLDER"), *file = getenv("LOG_FILE");
    if (!folder || !file || strncmp(path, folder, strlen(folder))) return;
    static int out = -1;
    if (out < 0) out = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct head head = {what, strlen(path), offset, size};
    struct iovec all[] = {{&head, sizeof head}, {(void *)path, strlen(path)}, {(void *)data, data ? size : 0}};
    if (syscall(SYS_writev, out, all, 3) < 0) abort();
}

static void note_of(char what, int file, int64_t offset, const void *data, int64_t size) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    note(what, path, offset, data, size);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset) {
    note_of('w', file, offset, data, size);
    return syscall(SYS_pwrite64, file, data, size, offset);
}
ssize_t pwrite64(int file, const void *data, size_t size, off_t offset) { return pwrite(file, data, size, offset); }

ssize_t write(int file, const void *data, size_t size) {
    note_of('w', file, lseek(file, 0, SEEK_CUR), data, size);
    return syscall(SYS_write, file, data, size);
}

int ftruncate(int file, off_t size) {
    note_of('t', file, 0, NULL, size);
    return syscall(SYS_ftruncate, file, size);
}
int ftruncate64(int file, off_t size) { return ftruncate(file, size); }

int fsync(int file) {
    int done = syscall(SYS_fsync, file);
    note_of('s', file, 0, NULL, 0);
    return done;
}
int fdatasync(int file) {
    int done = syscall(SYS_fdatasync, file);
    note_of('s', file, 0, NULL, 0);
    return done;
}

int unlink(const char *path) {
    note('u', path, 0, NULL, 0);
    return syscall(SYS_unlink, path);
}
int rename(const char *from, const char *to) {
    note('r', from, 0, to, strlen(to));
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int link(const char *from, const char *to) {
    note('l', from, 0, to, strlen(to));
    return syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int opened(const char *path, int flags, int mode) {
    if ((flags & O_CREAT) && syscall(SYS_faccessat, AT_FDCWD, path, F_OK)) note('c', path, 0, NULL, 0);
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
#define OPEN(NAME) \
    int NAME(const char *path, int flags, ...) { \
        va_list more; \
        va_start(more, flags); \
        int mode = flags & O_CREAT ? va_arg(more, int) : 0; \
        va_end(more); \
        return opened(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)
