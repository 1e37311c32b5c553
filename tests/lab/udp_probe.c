/*
 * Plain UDP between two hosts of the lab: the lines measured without the library.
 *
 *   udp_probe receive PORT                        until standard input ends
 *   udp_probe send ADDRESS PORT HZ BYTES COUNT    at even distances
 *
 * At the end the receiver prints one line for each datagram: its number, its delay and its arrival time, in nanoseconds. All
 * namespaces have one CLOCK_MONOTONIC.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ARRIVED = 1 << 20 };

struct probe {
    uint64_t sent_ns, number;
};

struct arrival {
    uint64_t number, delay_ns, at_ns;
};

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int receive_all(int udp, uint16_t port)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (bind(udp, (struct sockaddr *)&own, sizeof own) != 0) return perror("bind"), 1;
    puts("ready");
    fflush(stdout);
    struct pollfd waits[] = {{.fd = udp, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    static struct arrival arrived[MAX_ARRIVED];
    size_t count = 0;
    char data[65536];
    for (;;) {
        poll(waits, 2, -1);
        if (waits[0].revents) {
            ssize_t length = recv(udp, data, sizeof data, 0);
            uint64_t now = now_ns();
            struct probe probe;
            if (length < (ssize_t)sizeof probe || count == MAX_ARRIVED) continue;
            memcpy(&probe, data, sizeof probe);
            arrived[count++] = (struct arrival){probe.number, now - probe.sent_ns, now};
        } else if (waits[1].revents) {
            for (size_t i = 0; i < count; i++)
                printf("%llu %llu %llu\n", (unsigned long long)arrived[i].number,
                       (unsigned long long)arrived[i].delay_ns, (unsigned long long)arrived[i].at_ns);
            return 0;
        }
    }
}

static int send_all(int udp, char **arguments)
{
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[1]))};
    if (inet_pton(AF_INET, arguments[0], &peer.sin_addr) != 1) return fputs("bad address\n", stderr), 1;
    double hz = atof(arguments[2]);
    size_t bytes = (size_t)atol(arguments[3]);
    uint64_t count = strtoull(arguments[4], NULL, 10), began = now_ns();
    char data[65536] = {0};
    if (hz <= 0 || bytes < sizeof(struct probe) || bytes > sizeof data) return fputs("bad rate or size\n", stderr), 1;
    for (uint64_t number = 0; number < count; number++) {
        uint64_t due = began + (uint64_t)((double)number * 1e9 / hz);
        struct timespec until = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        struct probe probe = {now_ns(), number};
        memcpy(data, &probe, sizeof probe);
        sendto(udp, data, bytes, 0, (struct sockaddr *)&peer, sizeof peer);
    }
    return 0;
}

int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, 9);
    prctl(PR_SET_TIMERSLACK, 1);
    int udp = socket(AF_INET, SOCK_DGRAM, 0), room = 4 << 20;
    setsockopt(udp, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (argc == 3 && strcmp(argv[1], "receive") == 0) return receive_all(udp, (uint16_t)atoi(argv[2]));
    if (argc == 7 && strcmp(argv[1], "send") == 0) return send_all(udp, argv + 2);
    return fputs("usage: udp_probe receive PORT | send ADDRESS PORT HZ BYTES COUNT\n", stderr), 2;
}
