/* Fails the Nth call of a kind that a process makes to the C library.
 *
 * Loaded before the C library (LD_PRELOAD), so that nothing which the interpreter, the code or a
 * dependency does can go round it: wrapping Python's functions would miss what C code calls.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum kind { OPEN, READ, WRITE, FSYNC, RENAME, STAT, LIST, UNLINK, MKDIR, CHMOD, DUP, CLOSE,
            LINK, CWD, THREAD, KINDS };
static const char *const names[KINDS] = {
    "open", "read", "write", "fsync", "rename", "stat", "list", "unlink", "mkdir", "chmod",
    "dup", "close", "readlink", "getcwd", "thread"};

static atomic_long counts[KINDS];
static atomic_long injected;
static atomic_int armed;
static int wanted_kind, wanted_error, wanted_lasting;
static long wanted_nth;

const char *faults_name(int kind) { return kind < KINDS ? names[kind] : 0; }

/* An error of 0 cuts a read or a write short; one below 0 ends the process on the spot. */
void faults_arm(int kind, long nth, int error, int lasting) {
    for (int i = 0; i < KINDS; i++) atomic_store(&counts[i], 0);
    atomic_store(&injected, 0);
    wanted_kind = kind, wanted_nth = nth, wanted_error = error, wanted_lasting = lasting;
    atomic_store(&armed, 1);
}

long faults_disarm(void) {
    atomic_store(&armed, 0);
    return atomic_load(&injected);
}

long faults_count(int kind) { return atomic_load(&counts[kind]); }

static int fails(int kind) {
    if (!atomic_load(&armed)) return 0;
    long now = atomic_fetch_add(&counts[kind], 1) + 1;
    if (kind != wanted_kind || now < wanted_nth) return 0;
    if (now > wanted_nth && !wanted_lasting) return 0;
    atomic_fetch_add(&injected, 1);
    if (wanted_error < 0) kill(getpid(), SIGKILL);
    errno = wanted_error;
    return 1;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define WITH_64(type, name, parameters, body) \
    type name parameters { const char *self = #name; body } \
    type name##64 parameters { const char *self = #name "64"; body }

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); \
    }

WITH_64(int, open, (const char *path, int flags, ...), {
    REAL(int, self, const char *, int, ...);
    MODE(flags)
    return fails(OPEN) ? -1 : real(path, flags, mode);
})
WITH_64(int, openat, (int folder, const char *path, int flags, ...), {
    REAL(int, self, int, const char *, int, ...);
    MODE(flags)
    return fails(OPEN) ? -1 : real(folder, path, flags, mode);
})

ssize_t read(int file, void *to, size_t size) {
    REAL(ssize_t, "read", int, void *, size_t);
    if (fails(READ)) {
        if (wanted_error) return -1;
        size = size > 1 ? 1 : size;
    }
    return real(file, to, size);
}
ssize_t write(int file, const void *from, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (fails(WRITE)) {
        if (wanted_error) return -1;
        size = size > 1 ? 1 : size;
    }
    return real(file, from, size);
}

int fsync(int file) {
    REAL(int, "fsync", int);
    return fails(FSYNC) ? -1 : real(file);
}
int fdatasync(int file) {
    REAL(int, "fdatasync", int);
    return fails(FSYNC) ? -1 : real(file);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return fails(RENAME) ? -1 : real(from, to);
}
int renameat(int here, const char *from, int there, const char *to) {
    REAL(int, "renameat", int, const char *, int, const char *);
    return fails(RENAME) ? -1 : real(here, from, there, to);
}

int stat(const char *path, struct stat *to) {
    REAL(int, "stat", const char *, struct stat *);
    return fails(STAT) ? -1 : real(path, to);
}
int stat64(const char *path, struct stat64 *to) {
    REAL(int, "stat64", const char *, struct stat64 *);
    return fails(STAT) ? -1 : real(path, to);
}
int lstat(const char *path, struct stat *to) {
    REAL(int, "lstat", const char *, struct stat *);
    return fails(STAT) ? -1 : real(path, to);
}
int lstat64(const char *path, struct stat64 *to) {
    REAL(int, "lstat64", const char *, struct stat64 *);
    return fails(STAT) ? -1 : real(path, to);
}
int fstat(int file, struct stat *to) {
    REAL(int, "fstat", int, struct stat *);
    return fails(STAT) ? -1 : real(file, to);
}
int fstat64(int file, struct stat64 *to) {
    REAL(int, "fstat64", int, struct stat64 *);
    return fails(STAT) ? -1 : real(file, to);
}
int fstatat(int folder, const char *path, struct stat *to, int flags) {
    REAL(int, "fstatat", int, const char *, struct stat *, int);
    return fails(STAT) ? -1 : real(folder, path, to, flags);
}
int fstatat64(int folder, const char *path, struct stat64 *to, int flags) {
    REAL(int, "fstatat64", int, const char *, struct stat64 *, int);
    return fails(STAT) ? -1 : real(folder, path, to, flags);
}

DIR *opendir(const char *path) {
    REAL(DIR *, "opendir", const char *);
    return fails(LIST) ? 0 : real(path);
}
DIR *fdopendir(int file) {
    REAL(DIR *, "fdopendir", int);
    return fails(LIST) ? 0 : real(file);
}
struct dirent *readdir(DIR *folder) {
    REAL(struct dirent *, "readdir", DIR *);
    return fails(LIST) ? 0 : real(folder);
}
struct dirent64 *readdir64(DIR *folder) {
    REAL(struct dirent64 *, "readdir64", DIR *);
    return fails(LIST) ? 0 : real(folder);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return fails(UNLINK) ? -1 : real(path);
}
int unlinkat(int folder, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    return fails(UNLINK) ? -1 : real(folder, path, flags);
}
int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return fails(MKDIR) ? -1 : real(path, mode);
}
int fchmod(int file, mode_t mode) {
    REAL(int, "fchmod", int, mode_t);
    return fails(CHMOD) ? -1 : real(file, mode);
}
ssize_t readlink(const char *path, char *to, size_t size) {
    REAL(ssize_t, "readlink", const char *, char *, size_t);
    return fails(LINK) ? -1 : real(path, to, size);
}
char *getcwd(char *to, size_t size) {
    REAL(char *, "getcwd", char *, size_t);
    return fails(CWD) ? 0 : real(to, size);
}

WITH_64(int, fcntl, (int file, int command, ...), {
    REAL(int, self, int, int, ...);
    va_list more;
    va_start(more, command);
    void *given = va_arg(more, void *);
    va_end(more);
    int duplicates = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    return duplicates && fails(DUP) ? -1 : real(file, command, given);
})

/* As on Linux: the descriptor is gone, whatever close says. */
int close(int file) {
    REAL(int, "close", int);
    int failed = fails(CLOSE), error = errno, result = real(file);
    if (!failed) return result;
    errno = error;
    return -1;
}

int pthread_create(pthread_t *to, const pthread_attr_t *how, void *(*run)(void *), void *with) {
    REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    return fails(THREAD) ? wanted_error : real(to, how, run, with);
}
