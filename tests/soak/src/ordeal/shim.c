/* Files that stall, fill up and fail to sync: loaded into a server by LD_PRELOAD.
 *
 * The environment's ORDEAL_CONTROL names a file of three numbers, 64 bits each, which another process
 * changes while this one runs:
 *   0  not 0: writes and syncs wait
 *   1  bytes that may still be written; below 0: as many as there are
 *   2  syncs that are still to fail
 * Only regular files other than the standard streams are concerned. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int64_t calm[3] = {0, -1, 0};
static volatile int64_t *control = calm;

static ssize_t (*next_write)(int, const void *, size_t);
static ssize_t (*next_writev)(int, const struct iovec *, int);
static ssize_t (*next_pwrite)(int, const void *, size_t, off_t);
static int (*next_fsync)(int);
static int (*next_fdatasync)(int);

__attribute__((constructor)) static void begin(void) {
    next_write = dlsym(RTLD_NEXT, "write");
    next_writev = dlsym(RTLD_NEXT, "writev");
    next_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    next_fsync = dlsym(RTLD_NEXT, "fsync");
    next_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    const char *path = getenv("ORDEAL_CONTROL");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *map = mmap(NULL, sizeof calm, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) control = map;
    close(fd);
}

static int is_concerned(int fd) {
    struct stat found;
    if (control[0] == 0 && control[1] < 0 && control[2] <= 0) return 0;
    return 2 < fd && fstat(fd, &found) == 0 && (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode));
}

static void stall(void) {
    while (control[0] != 0) usleep(500);
}

/* How many of so many bytes fit; takes their room. */
static size_t take_room(size_t wanted) {
    for (;;) {
        int64_t room = control[1];
        if (room < 0) return wanted;
        int64_t taken = (int64_t)wanted < room ? (int64_t)wanted : room;
        if (__sync_bool_compare_and_swap(&control[1], room, room - taken)) return (size_t)taken;
    }
}

ssize_t write(int fd, const void *bytes, size_t size) {
    if (is_concerned(fd)) {
        stall();
        size_t fits = take_room(size);
        if (fits == 0 && 0 < size) {
            errno = ENOSPC;
            return -1;
        }
        size = fits;
    }
    return next_write(fd, bytes, size);
}

ssize_t writev(int fd, const struct iovec *pieces, int count) {
    /* The first piece alone is a short write, which every caller must bear. */
    if (is_concerned(fd) && 0 < count) return write(fd, pieces[0].iov_base, pieces[0].iov_len);
    return next_writev(fd, pieces, count);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t offset) {
    if (is_concerned(fd)) {
        stall();
        size_t fits = take_room(size);
        if (fits == 0 && 0 < size) {
            errno = ENOSPC;
            return -1;
        }
        size = fits;
    }
    return next_pwrite(fd, bytes, size, offset);
}

static int sync_fails(int fd) {
    if (!is_concerned(fd)) return 0;
    stall();
    for (;;) {
        int64_t left = control[2];
        if (left <= 0) return 0;
        if (__sync_bool_compare_and_swap(&control[2], left, left - 1)) return 1;
    }
}

int fsync(int fd) {
    if (sync_fails(fd)) {
        errno = EIO;
        return -1;
    }
    return next_fsync(fd);
}

int fdatasync(int fd) {
    if (sync_fails(fd)) {
        errno = EIO;
        return -1;
    }
    return next_fdatasync(fd);
}
