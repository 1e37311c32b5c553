/*
 * Preloaded into a host: moves its wall clock by the seconds that the file MMN_WALL_CLOCK holds as an int64_t, which
 * a test may change at any time. The monotonic clock, and the machine's clock, stay as they are.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__((constructor)) static void open_shift(void)
{
    int file = open(getenv("MMN_WALL_CLOCK"), O_RDONLY | O_CLOEXEC);
    shift = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (shift == MAP_FAILED)
        abort();
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int answer = (int)syscall(SYS_clock_gettime, clock, now);
    if (answer == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *shift;
    return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
