//! Members in Lua (LuaJIT) and Node beside members in Python: `scripts.py`.

use crate::stories::{play, stories};

stories! { play, "scripts.py":
    lua_meets_python_and_survives_the_leader
    lua_names_errors
    lua_has_the_structs_of_c
    lua_example_of_a_room
    node_meets_python_and_survives_the_leader
    node_names_errors
    node_has_the_structs_of_c
    node_example_of_a_room
}
