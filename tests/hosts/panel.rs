//! The C# lobby on terminals, under Mono and CoreCLR: `panel.py`.

use std::process::Command;

use crate::tools::{
    compile_csharp, compile_csharp_for_coreclr, dotnet, library, lobby_sources, root, run,
};

#[track_caller]
fn shows_on_mono(story: &str) {
    let lobby = compile_csharp(&lobby_sources(), "LobbyPanel.exe");
    shows(
        story,
        Command::new("python3")
            .arg(script())
            .arg(story)
            .arg("mono")
            .arg(lobby),
    );
}

#[track_caller]
fn shows_on_coreclr(story: &str) {
    let lobby = compile_csharp_for_coreclr(&lobby_sources(), "LobbyPanelCore.exe");
    shows(
        story,
        Command::new("python3")
            .arg(script())
            .arg(story)
            .arg(dotnet())
            .arg(lobby),
    );
}

#[track_caller]
fn shows(story: &str, command: &mut Command) {
    let printed = run(command.env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

fn script() -> std::path::PathBuf {
    root().join("tests/hosts/panel.py")
}

#[test]
fn two_lobbies_chat_transfer_and_kick() {
    shows_on_mono("two_lobbies_chat_transfer_and_kick");
}

#[test]
fn two_lobbies_chat_transfer_and_kick_on_coreclr() {
    shows_on_coreclr("two_lobbies_chat_transfer_and_kick");
}

#[test]
fn a_lost_member_is_shown_until_it_is_back() {
    shows_on_mono("a_lost_member_is_shown_until_it_is_back");
}

#[test]
fn the_panel_follows_its_window_and_draws_what_changed() {
    shows_on_mono("the_panel_follows_its_window_and_draws_what_changed");
}

#[test]
fn the_panel_follows_its_window_and_draws_what_changed_on_coreclr() {
    shows_on_coreclr("the_panel_follows_its_window_and_draws_what_changed");
}

#[test]
fn text_of_others_cannot_move_the_cursor() {
    shows_on_mono("text_of_others_cannot_move_the_cursor");
}

#[test]
fn a_failure_gives_the_terminal_back() {
    shows_on_mono("a_failure_gives_the_terminal_back");
}

#[test]
fn a_failure_gives_the_terminal_back_on_coreclr() {
    shows_on_coreclr("a_failure_gives_the_terminal_back");
}

#[test]
fn a_terminal_that_is_no_screen_gets_lines() {
    shows_on_mono("a_terminal_that_is_no_screen_gets_lines");
}

/// Mono ends at once, like every program that does not handle the signal.
#[test]
fn a_termination_gives_the_terminal_back_on_coreclr() {
    shows_on_coreclr("a_termination_gives_the_terminal_back");
}
