/*
 * One end of a transfer: a member that sends bytes, or takes them into a buffer or in parts.
 *
 *   gcc -std=gnu11 -O2 -pthread -Iinclude tests/hosts/transfers/transfers.c -o transfers -ldl
 *   MMN_LIBRARY=... ./transfers send|buffer|parts NAME SESSION SIZE [ADDRESS]
 *
 * Prints "address ...", "begun", "moving" at the first progress, and "result REASON DONE". A byte that differs ends it. Used by
 * transfers.py; it runs until its input ends.
 */
#define _GNU_SOURCE
#include <meta_mystia_network.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
#define MEMBER(result, name, parameters) result(*name) parameters;
    MMN_FUNCTIONS(MEMBER)
#undef MEMBER
} net;

static const char *role;
static uint8_t *bytes;
static uint64_t arrived;
static int32_t size;
static int moves;

__attribute__((noreturn)) static void fail(const char *what)
{
    printf("FAILED %s: %s\n", what, net.mmn_last_error_message());
    fflush(NULL);
    _exit(1);
}

static void must(int32_t code, const char *what)
{
    if (code != MMN_OK) fail(what);
}

/* As transfers.py makes it. */
static uint8_t byte_at(uint64_t place) { return (uint8_t)((place * 167 + (place >> 12) * 13) & 0xff); }

static void check(const uint8_t *data, uint64_t from, uint64_t length)
{
    for (uint64_t at = 0; at < length; at++)
        if (data[at] != byte_at(from + at)) fail("a byte differs");
}

static void on_event(void *user_data, const MmnEvent *event)
{
    (void)user_data;
    switch (event->kind) {
    case MMN_EVENT_JOINED:
        if (strcmp(role, "send") == 0) {
            uint64_t transfer = 0;
            must(net.mmn_send_transfer(event->room, event->peer, bytes, size, (const uint8_t *)"map", 3, &transfer), "send");
            free(bytes);
            bytes = NULL;
            printf("begun\n");
        }
        break;
    case MMN_EVENT_TRANSFER_OFFERED:
        if (event->length != 3 || memcmp(event->data, "map", 3) != 0 || event->count != (uint64_t)size) fail("the offer");
        if (strcmp(role, "buffer") == 0) {
            must(net.mmn_accept_transfer(event->room, event->peer, event->request, bytes, size), "accept");
        } else {
            must(net.mmn_accept_transfer_in_parts(event->room, event->peer, event->request), "accept in parts");
        }
        printf("begun\n");
        break;
    case MMN_EVENT_TRANSFER_PROGRESS:
        if (!moves) printf("moving\n");
        moves = 1;
        break;
    case MMN_EVENT_TRANSFER_PART:
        if (event->index != arrived) fail("a gap between parts");
        check(event->data, arrived, (uint64_t)event->length);
        arrived += (uint64_t)event->length;
        break;
    case MMN_EVENT_TRANSFER_RESULT:
        if (event->success && strcmp(role, "buffer") == 0) check(bytes, 0, event->count);
        if (event->success && strcmp(role, "parts") == 0 && arrived != event->count) fail("parts are missing");
        printf("result %" PRId32 " %" PRIu64 "\n", event->reason, event->index);
        break;
    default:
        break;
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc < 5) return 2;
    void *library = dlopen(getenv("MMN_LIBRARY"), RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
#define LOAD(result, name, parameters) *(void **)&net.name = dlsym(library, #name);
    MMN_FUNCTIONS(LOAD)
#undef LOAD
    role = argv[1];
    size = (int32_t)strtol(argv[4], NULL, 10);
    bytes = malloc((size_t)size);
    if (!bytes) return 1;
    if (strcmp(role, "send") == 0)
        for (int32_t at = 0; at < size; at++) bytes[at] = byte_at((uint64_t)at);
    MmnOptions options = {0};
    options.struct_size = sizeof options;
    must(net.mmn_default_options(&options), "mmn_default_options");
    options.dispatch_mode = MMN_DISPATCH_THREAD;
    options.on_event = on_event;
    options.member_hold_ms = 5000; /* so that a killed peer is gone soon */
    MmnRoom room = 0;
    must(net.mmn_open(argv[2], argv[3], &options, &room), "mmn_open");
    printf("address %s\n", net.mmn_local_address(room));
    fflush(stdout);
    if (argc > 5) must(net.mmn_connect(room, argv[5]), "mmn_connect");
    while (getchar() != EOF) continue;
    must(net.mmn_close(room), "mmn_close");
    free(bytes);
    return 0;
}
