//! The C# sample, under Mono and CoreCLR: `sample.py`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stories::stories;
use crate::tools::{
    compile_csharp, compile_csharp_for_coreclr, dotnet, library, lobby_sources, root, run,
};

#[track_caller]
fn on_mono(file: &str, story: &str) {
    let lobby = compile_csharp(&lobby_sources(), "Lobby.exe");
    shows(file, story, Path::new("mono"), lobby);
}

#[track_caller]
fn on_coreclr(file: &str, story: &str) {
    let lobby = compile_csharp_for_coreclr(&lobby_sources(), "LobbyCore.exe");
    shows(file, story, &dotnet(), lobby);
}

#[track_caller]
fn shows(file: &str, story: &str, runtime: &Path, lobby: PathBuf) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts").join(file))
        .args([story])
        .args([runtime, &lobby])
        .env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

mod mono {
    use super::{on_mono, stories};

    stories! { on_mono, "sample.py":
        two_lobbies_chat_transfer_and_kick
        a_lost_member_is_shown_until_it_is_back
        a_panel_shows_the_links_and_the_rooms_around
        text_of_others_cannot_move_the_cursor
        a_failed_dial_ends_it_with_the_librarys_sentence
        ctrl_c_leaves_the_room
    }
}

mod coreclr {
    use super::{on_coreclr, stories};

    stories! { on_coreclr, "sample.py":
        two_lobbies_chat_transfer_and_kick
        a_killed_leader_is_replaced
        a_failed_dial_ends_it_with_the_librarys_sentence
        ctrl_c_leaves_the_room
        a_termination_leaves_the_room
    }
}
