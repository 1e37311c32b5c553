/*
 * The C sample's access to the system, for POSIX and for Windows: loading a library, a lock, a clock, and input with a
 * time limit.
 */
#ifndef PLATFORM_H
#define PLATFORM_H

#include <stddef.h>

#ifdef _WIN32

#include <io.h>
#include <stdio.h>
#include <string.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#define LIBRARY_FILE "meta_mystia_network.dll"

static void *open_library(const char *path) { return (void *)LoadLibraryA(path); }

static void *find_symbol(void *library, const char *name) { return (void *)GetProcAddress((HMODULE)library, name); }

static const char *library_error(void)
{
    static char text[32];
    snprintf(text, sizeof text, "error %lu", GetLastError());
    return text;
}

typedef SRWLOCK lock_type;
#define LOCK_INITIALIZER SRWLOCK_INIT
static void lock(lock_type *lock) { AcquireSRWLockExclusive(lock); }
static void unlock(lock_type *lock) { ReleaseSRWLockExclusive(lock); }

static double now_seconds(void) { return (double)GetTickCount64() / 1e3; }

static int input_is_terminal(void) { return _isatty(_fileno(stdin)); }

/* A thread reads, because Windows has no read with a time limit that serves consoles, pipes and files alike. */
static struct {
    SRWLOCK lock;
    CONDITION_VARIABLE changed;
    char bytes[512];
    DWORD used;
    int started, ended;
} input = {SRWLOCK_INIT, CONDITION_VARIABLE_INIT, {0}, 0, 0, 0};

static DWORD WINAPI read_all(LPVOID unused)
{
    char bytes[sizeof input.bytes];
    DWORD got;
    (void)unused;
    while (ReadFile(GetStdHandle(STD_INPUT_HANDLE), bytes, sizeof bytes, &got, NULL) && got > 0) {
        AcquireSRWLockExclusive(&input.lock);
        while (input.used > 0) SleepConditionVariableSRW(&input.changed, &input.lock, INFINITE, 0);
        memcpy(input.bytes, bytes, got);
        input.used = got;
        ReleaseSRWLockExclusive(&input.lock);
        WakeAllConditionVariable(&input.changed);
    }
    AcquireSRWLockExclusive(&input.lock);
    input.ended = 1;
    ReleaseSRWLockExclusive(&input.lock);
    WakeAllConditionVariable(&input.changed);
    return 0;
}

/* The number of bytes; 0 when none came within `seconds`; -1 at the end of the input. */
static long read_input(char *bytes, size_t size, double seconds)
{
    long got = 0;
    AcquireSRWLockExclusive(&input.lock);
    if (!input.started) {
        HANDLE thread = CreateThread(NULL, 0, read_all, NULL, 0, NULL);
        input.started = 1;
        if (thread) CloseHandle(thread);
        else input.ended = 1;
    }
    /* A wait may also end early: then there is no input yet, and the caller calls again. */
    if (input.used == 0 && !input.ended) SleepConditionVariableSRW(&input.changed, &input.lock, (DWORD)(seconds * 1000) + 1, 0);
    if (input.used > 0) {
        got = (long)(size < input.used ? size : input.used);
        memcpy(bytes, input.bytes, (size_t)got);
        input.used -= (DWORD)got;
        memmove(input.bytes, input.bytes + got, input.used);
    } else if (input.ended) {
        got = -1;
    }
    ReleaseSRWLockExclusive(&input.lock);
    WakeAllConditionVariable(&input.changed);
    return got;
}

static void wait_seconds(double seconds) { Sleep((DWORD)(seconds * 1000) + 1); }

#else

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#ifdef __APPLE__
#define LIBRARY_FILE "libmeta_mystia_network.dylib"
#else
#define LIBRARY_FILE "libmeta_mystia_network.so"
#endif

static void *open_library(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }

static void *find_symbol(void *library, const char *name) { return dlsym(library, name); }

static const char *library_error(void) { return dlerror(); }

typedef pthread_mutex_t lock_type;
#define LOCK_INITIALIZER PTHREAD_MUTEX_INITIALIZER
static void lock(lock_type *lock) { pthread_mutex_lock(lock); }
static void unlock(lock_type *lock) { pthread_mutex_unlock(lock); }

static double now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int input_is_terminal(void) { return isatty(STDIN_FILENO); }

/* The number of bytes; 0 when none came within `seconds`; -1 at the end of the input. */
static long read_input(char *bytes, size_t size, double seconds)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, (int)(seconds * 1000) + 1) <= 0) return 0;
    ssize_t got = read(STDIN_FILENO, bytes, size);
    return got > 0 ? (long)got : -1;
}

static void wait_seconds(double seconds) { poll(NULL, 0, (int)(seconds * 1000) + 1); }

#endif
#endif
