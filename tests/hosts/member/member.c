/*
 * A member that obeys commands, small enough for rooms of many processes.
 *
 *   gcc -std=gnu11 -O2 -pthread tests/hosts/member/member.c -o member -ldl
 *   x86_64-w64-mingw32-gcc-posix -std=gnu11 -O2 -pthread -static tests/hosts/member/member.c -o member.exe
 *   MMN_LIBRARY=... ./member --id ID --session SESSION [--connect ADDRESS] [--talk MILLISECONDS]
 *
 * Prints lines, each with the monotonic clock's seconds as its second word:
 *   ready SECONDS ADDRESS              the room is open
 *   view SECONDS PEERS LEADER          another number of connected peers, or another leader ("-": none)
 *   dialled SECONDS ADDRESS CODE       the result of a dial
 *   received SECONDS MESSAGES REFUSED  received messages, and own broadcasts that were refused; on request
 * Takes lines on standard input: "connect ADDRESS", "count", "leave" (shuts down and ends with 0). When the input ends, it
 * ends at once: no member outlives its test.
 */
#define _GNU_SOURCE
#include "../classic.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TYPE = 0x0100, TALK_BYTES = 200 };

static atomic_long received, refused;
static atomic_int leaving;
static const char *own_id = "?";

static double now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((format(printf, 2, 3))) static void say(const char *what, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("%s %.6f %s\n", what, now_seconds(), text);
    fflush(stdout);
}

static void must(int32_t code, const char *what)
{
    if (code == 0) return;
    fprintf(stderr, "%s: %s answered %d: %s\n", own_id, what, (int)code, net.GetLastErrorMessage());
    fflush(NULL);
    _exit(1);
}

/* In a callback, queries show the event's state or a newer one: the last printed line is current. */
static void say_view(void)
{
    const char *leader = net.GetCurrentLeader();
    say("view", "%d %s", (int)net.GetPeerCount(), leader && *leader ? leader : "-");
}

static void on_leader(const char *leader)
{
    (void)leader;
    say_view();
}

static void on_status(const char *peer, int32_t status)
{
    (void)peer, (void)status;
    say_view();
}

static void on_result(const char *address, uint8_t success, int32_t code)
{
    (void)success;
    say("dialled", "%s %d", address, (int)code);
}

static void on_receive(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags)
{
    (void)peer, (void)data, (void)length, (void)type, (void)flags;
    atomic_fetch_add(&received, 1);
}

static void *talk(void *milliseconds)
{
    long pause_ms = (long)(intptr_t)milliseconds;
    struct timespec pause_time = {pause_ms / 1000, pause_ms % 1000 * 1000000};
    uint8_t data[TALK_BYTES];
    memset(data, 'x', sizeof data);
    while (!atomic_load(&leaving)) {
        int32_t code = net.BroadcastMessage(data, sizeof data, TYPE, 0);
        /* Full queues are allowed (a member may be paused), and so is a room that is closing. */
        if (code == -7) atomic_fetch_add(&refused, 1);
        else if (!atomic_load(&leaving)) must(code, "BroadcastMessage");
        nanosleep(&pause_time, NULL);
    }
    return NULL;
}

static void dial(const char *address)
{
    int32_t code = net.ConnectToPeer(address);
    /* Reported like a failed dial: the controlling process decides whether to try again. */
    if (code != 0) say("dialled", "%s %d", address, (int)code);
}

int main(int argc, char **argv)
{
    const char *session = NULL, *contact = NULL;
    long talk_ms = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--id") == 0) own_id = argv[i + 1];
        else if (strcmp(argv[i], "--session") == 0) session = argv[i + 1];
        else if (strcmp(argv[i], "--connect") == 0) contact = argv[i + 1];
        else if (strcmp(argv[i], "--talk") == 0) talk_ms = atol(argv[i + 1]);
    }
    if (!session) return fprintf(stderr, "usage: member --id ID --session S [--connect ADDRESS] [--talk MS]\n"), 2;
    load_classic();
    struct network_config config = QUIET_CONFIG;
    must(net.InitializeNetworkWithConfig(own_id, session, &config), "InitializeNetworkWithConfig");
    must(net.RegisterLeaderChangedCallback(on_leader), "RegisterLeaderChangedCallback");
    must(net.RegisterPeerStatusCallback(on_status), "RegisterPeerStatusCallback");
    must(net.RegisterConnectionResultCallback(on_result), "RegisterConnectionResultCallback");
    must(net.RegisterReceiveCallback(on_receive), "RegisterReceiveCallback");
    say("ready", "%s", net.GetLocalAddr());
    if (contact) dial(contact);
    pthread_t talker;
    if (talk_ms > 0 && pthread_create(&talker, NULL, talk, (void *)(intptr_t)talk_ms) != 0) return 1;

    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "connect ", 8) == 0) dial(line + 8);
        else if (strcmp(line, "count") == 0) say("received", "%ld %ld", atomic_load(&received), atomic_load(&refused));
        else if (strcmp(line, "leave") == 0) {
            atomic_store(&leaving, 1);
            must(net.ShutdownNetwork(), "ShutdownNetwork");
            if (talk_ms > 0) pthread_join(talker, NULL);
            return 0;
        }
    }
    _exit(0);
}
