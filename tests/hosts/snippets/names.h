/* The names that parts of programs in the documents use. */
#include <meta_mystia_network.h>

extern MmnRoom room;
extern const char *my_name;
extern int i_am_the_host;
void add_player(void *game, const char *id);
void remove_player(void *game, const char *id);
void send_state_if_leader(void *game, const char *id);
void show_as_lagging(void *game, const char *id);
void show_as_present(void *game, const char *id);
void leave_soon(void *game);
void on_room(void *user_data, const MmnListedRoom *room);
