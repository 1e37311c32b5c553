/*
 * udp_rtt - the yardstick for `abi_bench rtt`: a ping-pong of two processes over a plain UDP socket on
 * loopback, with nothing in between.
 *
 * Build:  gcc -O2 -std=gnu11 -Wall -Wextra -o udp_rtt udp_rtt.c
 * Usage:  ./udp_rtt SIZE COUNT       prints the median round trip in microseconds
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int bound_socket(struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    socklen_t length = sizeof *address;
    struct timeval limit = {2, 0};
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)address, length) != 0 ||
        getsockname(fd, (struct sockaddr *)address, &length) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) {
        perror("udp_rtt");
        exit(1);
    }
    return fd;
}

int main(int argc, char **argv)
{
    int size = argc == 3 ? atoi(argv[1]) : 0, count = argc == 3 ? atoi(argv[2]) : 0;
    if (size < 1 || size > 1400 || count < 1 || count > 10000000) {
        fprintf(stderr, "usage: udp_rtt SIZE COUNT   (1..1400 bytes, 1..10000000 round trips)\n");
        return 2;
    }
    struct sockaddr_in mine, echo;
    int here = bound_socket(&mine), there = bound_socket(&echo);
    char buffer[1400] = {0};
    pid_t child = fork();
    if (child < 0) return perror("fork"), 1;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            ssize_t got = recv(there, buffer, sizeof buffer, 0);
            if (got > 0) sendto(there, buffer, (size_t)got, 0, (struct sockaddr *)&mine, sizeof mine);
        }
    }
    double *samples = malloc((size_t)count * sizeof *samples);
    if (!samples) return 1;
    for (int i = 0; i < count; i++) {
        double start = now_us();
        sendto(here, buffer, (size_t)size, 0, (struct sockaddr *)&echo, sizeof echo);
        if (recv(here, buffer, sizeof buffer, 0) != size) return fprintf(stderr, "udp_rtt: no echo\n"), 1;
        samples[i] = now_us() - start;
    }
    kill(child, SIGKILL); /* our own child */
    qsort(samples, (size_t)count, sizeof *samples, compare);
    printf("%.3f\n", samples[count / 2]);
    free(samples);
    return 0;
}
