/*
 * A member of a static quorum, linked with the library: voter ID SESSION STATE_DIRECTORY VOTER,VOTER,... [ADDRESS]
 * It prints the lines of the samples (examples/c/lobby.c), and leaves on /quit from standard input.
 */
#include <meta_mystia_network.h>

#include "../../examples/c/platform.h"

#include <stdio.h>
#include <string.h>

enum { HELLO = 0x0100 };

static MmnRoom room;
static const char *own_id;

static void say(const char *text, const char *more)
{
    printf("[%s] %s%s\n", own_id, text, more);
    fflush(stdout);
}

static void on_event(void *user_data, const MmnEvent *event)
{
    (void)user_data;
    if (event->kind == MMN_EVENT_LEADER_CHANGED) {
        if (*event->peer) say("leader is ", event->peer);
        else say("no leader", "");
    } else if (event->kind == MMN_EVENT_MESSAGE) {
        printf("[%s] from %s: %.*s\n", own_id, event->peer, (int)event->length, (const char *)event->data);
        fflush(stdout);
    }
}

static int refused(int32_t code)
{
    if (code >= 0) return 0;
    printf("[%s] error %d: %s\n", own_id, (int)code, mmn_last_error_message());
    fflush(stdout);
    return 1;
}

/* This member comes last in its own list: no test compares the order. */
static void say_members(void)
{
    char list[4096], line[8192] = "members:";
    snprintf(list, sizeof list, "%s", mmn_peers(room));
    size_t used = strlen(line);
    for (char *name = strtok(list, "\n"); name; name = strtok(NULL, "\n")) {
        int32_t rtt = mmn_peer_rtt_ms(room, name);
        char text[16] = "-";
        if (rtt >= 0) snprintf(text, sizeof text, "%d", (int)rtt);
        used += (size_t)snprintf(line + used, sizeof line - used, " %s(%s ms)", name, text);
    }
    const char *leader = mmn_leader(room);
    used += (size_t)snprintf(line + used, sizeof line - used, " %s(0 ms); ", own_id);
    if (leader && *leader) snprintf(line + used, sizeof line - used, "leader: %s", leader);
    else snprintf(line + used, sizeof line - used, "no leader");
    say(line, "");
}

/* 0 after /quit from standard input, or at its end. */
static int stays(double seconds)
{
    static char typed[256];
    static size_t used;
    double until = now_seconds() + seconds;
    for (double left; (left = until - now_seconds()) > 0;) {
        long got = read_input(typed + used, sizeof typed - 1 - used, left);
        if (got < 0) return 0;
        used += (size_t)got;
        typed[used] = 0;
        if (strstr(typed, "/quit") || used == sizeof typed - 1) return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 5) return fprintf(stderr, "usage: voter ID SESSION STATE_DIRECTORY VOTER,VOTER,... [ADDRESS]\n"), 2;
    own_id = argv[1];
    for (char *comma = argv[4]; (comma = strchr(comma, ','));) *comma = '\n';
    MmnOptions options = {0};
    options.struct_size = sizeof options;
    if (refused(mmn_default_options(&options))) return 1;
    options.quorum_policy = MMN_QUORUM_STATIC;
    options.quorum_roster = argv[4];
    options.state_directory = argv[3];
    options.on_event = on_event;
    if (refused(mmn_open(own_id, argv[2], &options, &room))) return 1;
    say("listening on ", mmn_local_address(room));
    if (argc > 5) refused(mmn_connect(room, argv[5]));
    while (stays(0.5)) {
        refused(mmn_broadcast(room, (const uint8_t *)"hello", 5, HELLO, NULL));
        say_members();
    }
    if (refused(mmn_close(room))) return 1;
    say("closed", "");
    return 0;
}
