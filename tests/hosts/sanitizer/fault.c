/*
 * Breaks a promise to the library on purpose, to prove that AddressSanitizer is in it and reports.
 *
 *   fault library   passes a configuration shorter than its 44 bytes: the library's own read is the fault
 *   fault leak      loses a block of memory: found at the exit
 */
#include "../classic.h"

#include <string.h>

static void *volatile block;

static __attribute__((noinline)) void leak(void)
{
    for (int i = 0; i < 100; i++) block = malloc(1000);
    block = NULL;
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    if (strcmp(argv[1], "leak") == 0) {
        leak();
        return 0;
    }
    load_classic();
    /* The last four bytes, the flags that end the struct, are beyond the block. */
    struct network_config config = QUIET_CONFIG, *cut = malloc(sizeof config - 4);
    if (!cut) return 2;
    memcpy(cut, &config, sizeof config - 4);
    net.InitializeNetworkWithConfig("fault", "fault", cut);
    free(cut);
    return 0;
}
