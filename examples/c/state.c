/* A counter, a chat and a map that a room's members share, and that no leader takes with it. docs/state.md explains it.
 *   gcc -std=gnu11 -O2 -Iinclude examples/c/state.c -o state -Ltarget/release -lmeta_mystia_network && ./state alice tea
 * Lines of the standard input: a number adds to the counter, /map NAME, /claim ITEM, /quit; all others are chat. */
#include <meta_mystia_network.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADD = MMN_MIN_MESSAGE_TYPE, SAY };
static int counter, used; /* bytes of the chat: one line after another */
static char *chat;

static void append(const char *text, int length)
{
    if (!(chat = realloc(chat, (size_t)(used + length + 1)))) abort();
    memcpy(chat + used, text, (size_t)length), chat[used += length] = 0;
}

static void on_event(void *me, const MmnEvent *event)
{
    char text[512], *end;
    int length = snprintf(text, sizeof text, "%s: %.*s\n", event->peer, event->length < 300 ? event->length : 300, event->data);
    if (event->kind == MMN_EVENT_ACTION && event->msg_type == ADD) printf("counter %d\n", counter += atoi(strrchr(text, ':') + 2));
    if (event->kind == MMN_EVENT_ACTION && event->msg_type == SAY) append(text, length), printf("chat %s", text);
    if (event->kind == MMN_EVENT_LEADER_CHANGED) printf("leader %s\n", *event->peer ? event->peer : "none");
    if (event->kind == MMN_EVENT_PROPERTY && *event->owner == 0) printf("%s is %.*s\n", event->other, event->length, event->data);
    if (event->kind == MMN_EVENT_PROPERTY && strcmp(event->owner, me) == 0) printf("claim won\n");
    if (event->kind == MMN_EVENT_STATE_RESET) {
        used = 0, append((const char *)event->data, event->length), counter = (int)strtol(chat, &end, 10);
        memmove(chat, end + (*end != 0), strlen(end)), used = (int)strlen(chat);
        printf("loaded %d, %d bytes\n", counter, used);
    }
    if (event->kind == MMN_EVENT_SNAPSHOT_WANTED) {
        if (!(end = malloc((size_t)used + 16))) abort();
        mmn_provide_snapshot(event->room, event->request, (uint8_t *)end, sprintf(end, "%d\n%s", counter, chat)), free(end);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    MmnStateOptions state = {.struct_size = sizeof state};
    MmnOptions options = {.struct_size = sizeof options};
    MmnRoom room;
    if (argc < 3 || mmn_default_state_options(&state) || mmn_default_options(&options)) return 2;
    options.state = &state, options.on_event = on_event, options.user_data = argv[1], options.discovery_mode = MMN_DISCOVERY_CONNECT;
    if (mmn_open(argv[1], argv[2], &options, &room)) return fprintf(stderr, "%s\n", mmn_last_error_message()), 1;
    for (char line[300]; fgets(line, sizeof line, stdin) && strcmp(line, "/quit\n");) {
        const int length = (int)strcspn(line, "\n"), is_map = strncmp(line, "/map ", 5) == 0;
        const int is_claim = strncmp(line, "/claim ", 7) == 0, is_number = strspn(line, "0123456789") == (size_t)length;
        MmnPropertyChange change = {.struct_size = sizeof change, .key = "map", .expected_version = MMN_ANY_VERSION};
        if (line[length] = 0, is_map) change.value = (uint8_t *)line + 5, change.length = length - 5;
        if (is_claim) change.key = line + 7, change.expected_version = 0; /* the first one creates it */
        if (is_claim) change.flags = MMN_PROPERTY_KEEP_VALUE | MMN_PROPERTY_FALLS_TO_LEADER, change.owner = argv[1];
        if (is_map || is_claim) mmn_set_properties(room, &change, 1, NULL);
        else mmn_submit(room, (uint8_t *)line, length, is_number && length && length < 7 ? ADD : SAY, NULL);
    }
    return mmn_close(room) != MMN_OK;
}
