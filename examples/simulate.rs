//! Draws a run: of a seeded room under faults, or of real rooms that wrote traces. `docs/pictures.md` explains how to
//! read the page.

use std::path::PathBuf;
use std::process::ExitCode;

use room_simulator::plan::Plan;
use room_simulator::profile::StrategyPlan;
use room_simulator::record::{Section, from_lines, peers, to_lines};
use room_simulator::{chaos, gossip, page, seeded};

const USAGE: &str = "\
usage: simulate --seed S [--nodes N] [--strategy raft|gossip|seeded] [--strict-lowest] [--out FILE] [--save FILE]
       simulate --trace FILE... [--out FILE]

  --seed S      runs the room of this seed under faults
  --nodes N     with so many peers, 2 to 100 (5)
  --strategy S  raft: votes elect the leader; gossip: the lowest id does that finds none; seeded: votes of a fixed
                group do (raft)
  --strict-lowest  with gossip: the lowest id follows for certain when a leader is lost; else the seed decides
  --save FILE   keeps the trace of the run, too
  --trace FILE  draws traces that rooms wrote (option trace_path), one file for each peer, or saved ones
  --out FILE    the page (run.html)";

/// Election strategy of the simulated room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Raft,
    Gossip,
    Seeded,
}

/// Options of the command line.
#[derive(Debug, Default)]
struct Wishes {
    seed: Option<u64>,
    nodes: Option<usize>,
    strategy: Option<Strategy>,
    strict_lowest: bool,
    traces: Vec<PathBuf>,
    out: Option<PathBuf>,
    save: Option<PathBuf>,
}

fn main() -> ExitCode {
    let wishes = match Wishes::parse(std::env::args().skip(1)) {
        Ok(Some(wishes)) => wishes,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match draw(&wishes) {
        Ok(printed) => {
            println!("{printed}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

impl Wishes {
    /// `None` when help is requested.
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut wishes = Self::default();
        let mut option: Option<String> = None;
        while let Some(argument) = arguments.next() {
            if argument == "--help" || argument == "-h" {
                return Ok(None);
            }
            if !argument.starts_with("--") {
                // Only traces may repeat: `--trace *.jsonl`.
                if option.as_deref() != Some("--trace") {
                    return Err(format!("\"{argument}\" belongs to no option"));
                }
                wishes.traces.push(argument.into());
                continue;
            }
            if argument == "--strict-lowest" {
                wishes.strict_lowest = true;
                option = Some(argument);
                continue;
            }
            let value = arguments.next().filter(|value| !value.starts_with("--"));
            let value = match argument.as_str() {
                "--seed" | "--nodes" | "--strategy" | "--trace" | "--out" | "--save" => {
                    value.ok_or_else(|| format!("{argument} needs a value"))?
                }
                _ => return Err(format!("there is no option {argument}")),
            };
            match argument.as_str() {
                "--seed" => {
                    let seed = value.parse();
                    let seed = seed
                        .map_err(|_| format!("--seed {value}: a number from 0 to {}", u64::MAX))?;
                    wishes.seed = Some(seed);
                }
                "--nodes" => {
                    let nodes = value.parse().ok().filter(|nodes| (2..=100).contains(nodes));
                    let nodes =
                        nodes.ok_or_else(|| format!("--nodes {value}: a number from 2 to 100"))?;
                    wishes.nodes = Some(nodes);
                }
                "--strategy" => {
                    wishes.strategy = Some(match value.as_str() {
                        "raft" => Strategy::Raft,
                        "gossip" => Strategy::Gossip,
                        "seeded" => Strategy::Seeded,
                        _ => return Err(format!("--strategy {value}: raft, gossip or seeded")),
                    });
                }
                "--trace" => wishes.traces.push(value.into()),
                "--out" => wishes.out = Some(value.into()),
                _ => wishes.save = Some(value.into()),
            }
            option = Some(argument);
        }
        match (wishes.seed, wishes.traces.is_empty()) {
            (None, true) => Err("give --seed S or --trace FILE".into()),
            (Some(_), false) => Err("give --seed or --trace, not both".into()),
            (None, false)
                if wishes.nodes.is_some() || wishes.save.is_some() || wishes.strategy.is_some() =>
            {
                Err("--nodes, --strategy and --save go with --seed".into())
            }
            _ if wishes.strict_lowest && wishes.strategy != Some(Strategy::Gossip) => {
                Err("--strict-lowest goes with --strategy gossip".into())
            }
            _ => Ok(Some(wishes)),
        }
    }
}

/// Writes the page; returns a sentence about it.
fn draw(wishes: &Wishes) -> Result<String, String> {
    let mut printed = String::new();
    let sections = match wishes.seed {
        Some(seed) => {
            let nodes = wishes.nodes.unwrap_or(5);
            let plan = plan_of(seed, nodes, wishes);
            let (outcome, sections) = chaos::recorded(&plan);
            if let Some(violation) = outcome.violation {
                printed = format!("VIOLATION {violation}\n");
            }
            sections
        }
        None => read(&wishes.traces)?,
    };
    if let Some(path) = &wishes.save {
        write(path, &to_lines(&sections))?;
    }
    let out = wishes.out.clone().unwrap_or_else(|| "run.html".into());
    let page = page::page(&sections);
    write(&out, &page)?;
    let entries: usize = sections.iter().map(|section| section.entries.len()).sum();
    printed.push_str(&format!(
        "{}: {} peers, {entries} entries, {} KiB",
        out.display(),
        peers(&sections).len(),
        page.len() / 1024
    ));
    Ok(printed)
}

fn plan_of(seed: u64, nodes: usize, wishes: &Wishes) -> Plan {
    let mut plan = match wishes.strategy {
        Some(Strategy::Gossip) => gossip::draw_for(seed, Some(nodes)),
        Some(Strategy::Seeded) => seeded::draw_for(seed, Some(nodes)),
        Some(Strategy::Raft) | None => Plan::draw_for(seed, Some(nodes)),
    };
    if let StrategyPlan::Gossip(rules) = &mut plan.strategy {
        rules.strict_lowest |= wishes.strict_lowest;
    }
    plan
}

fn read(paths: &[PathBuf]) -> Result<Vec<Section>, String> {
    let mut sections = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        let read = from_lines(&text);
        let read = read.map_err(|error| format!("{} is no trace: {error}", path.display()))?;
        sections.extend(read);
    }
    Ok(sections)
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    std::fs::write(path, text)
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Wishes>, String> {
        Wishes::parse(line.split_whitespace().map(str::to_owned))
    }

    fn folder() -> PathBuf {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/simulate");
        std::fs::create_dir_all(&folder).expect("target can be written");
        folder
    }

    #[test]
    fn bad_arguments_are_named() {
        for (line, printed) in [
            ("", "give --seed S or --trace FILE"),
            ("--seed", "--seed needs a value"),
            ("--seed --nodes 5", "--seed needs a value"),
            (
                "--seed x",
                "--seed x: a number from 0 to 18446744073709551615",
            ),
            ("--seed -1", "--seed -1: a number"),
            ("--seed 1 --nodes 1", "--nodes 1: a number from 2 to 100"),
            (
                "--seed 1 --nodes 101",
                "--nodes 101: a number from 2 to 100",
            ),
            ("--seed 1 stray", "\"stray\" belongs to no option"),
            ("--seed 1 --colour red", "there is no option --colour"),
            ("--seed 1 --trace a", "not both"),
            ("--trace a --nodes 3", "go with --seed"),
            ("--trace a --strategy gossip", "go with --seed"),
            (
                "--seed 1 --strategy votes",
                "--strategy votes: raft, gossip or seeded",
            ),
            ("--seed 1 --strict-lowest", "goes with --strategy gossip"),
            (
                "--seed 1 --strategy raft --strict-lowest",
                "goes with --strategy gossip",
            ),
            ("--seed 1 --strict-lowest yes", "belongs to no option"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(printed), "{line}: {error}");
        }
    }

    #[test]
    fn many_traces_may_follow_one_option() {
        let wishes = parse("--trace a b --out c --trace d").expect("fine");
        let wishes = wishes.expect("no help");
        assert_eq!(wishes.traces, ["a", "b", "d"].map(PathBuf::from));
        assert_eq!(wishes.out, Some("c".into()));
    }

    #[test]
    fn a_seed_is_drawn_saved_and_drawn_again_as_the_same_page() {
        let folder = folder();
        let (first, again) = (folder.join("first.html"), folder.join("again.html"));
        let saved = folder.join("saved.jsonl");
        let wishes = Wishes {
            seed: Some(7),
            nodes: Some(3),
            out: Some(first.clone()),
            save: Some(saved.clone()),
            ..Wishes::default()
        };
        let printed = draw(&wishes).expect("a page");
        assert!(printed.contains(" peers, "), "{printed}");
        let wishes = Wishes {
            traces: vec![saved],
            out: Some(again.clone()),
            ..Wishes::default()
        };
        draw(&wishes).expect("a page");
        let page = std::fs::read_to_string(first).expect("a page");
        assert!(page == std::fs::read_to_string(again).expect("a page"));
    }

    #[test]
    fn a_room_that_elects_by_gossip_is_drawn_with_its_messages() {
        let out = folder().join("gossip.html");
        let line = format!(
            "--seed 7 --nodes 4 --strategy gossip --strict-lowest --out {}",
            out.display()
        );
        let wishes = parse(&line).expect("fine").expect("no help");
        assert!(wishes.strict_lowest);
        let printed = draw(&wishes).expect("a page");
        assert!(!printed.contains("VIOLATION"), "{printed}");
        let page = std::fs::read_to_string(out).expect("a page");
        for kind in ["\"kind\":\"proposal\"", "\"kind\":\"declaration\""] {
            assert!(page.contains(kind), "{kind}");
        }
        assert!(!page.contains("\"kind\":\"vote_request\""));
    }

    #[test]
    fn a_seeded_room_is_drawn_with_its_proposals_and_the_states_of_its_members() {
        let out = folder().join("seeded.html");
        let line = format!(
            "--seed 1 --nodes 5 --strategy seeded --out {}",
            out.display()
        );
        let wishes = parse(&line).expect("fine").expect("no help");
        let printed = draw(&wishes).expect("a page");
        assert!(!printed.contains("VIOLATION"), "{printed}");
        let page = std::fs::read_to_string(out).expect("a page");
        for what in [
            "\"kind\":\"pre_proposal\"",
            "\"kind\":\"leader_keep_alive\"",
            "\"what\":\"member_state\"",
            "\"state\":\"unreachable\"",
            "\"ballot\":{\"counter\":",
            "\"what\":\"record\",\"epoch\":0,\"term\":1,",
        ] {
            assert!(page.contains(what), "{what}");
        }
    }

    #[test]
    fn files_that_are_no_traces_are_named_with_the_line() {
        let folder = folder();
        let header = r#"{"trace":1,"origin_us":0,"routine":1,"by":"room"}"#;
        let entry = r#"{"at":1,"what":"stopped"}"#;
        for (name, text, printed) in [
            ("empty", "", "it is empty"),
            ("other", "hello\n", "line 1 is no header"),
            ("headless", &format!("{entry}\n"), "line 1 is no header"),
            (
                "inside",
                &format!("{header}\n{{\n{entry}\n"),
                "line 2 is neither",
            ),
            (
                "end",
                &format!("{header}\n{entry}\n{{\n"),
                "line 3 is neither",
            ),
            (
                "newer",
                &header.replace(":1,\"origin", ":2,\"origin"),
                "version 2 of the format",
            ),
        ] {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("target can be written");
            let error = read(&[path]).expect_err(name);
            assert!(error.contains(printed) && error.contains(name), "{error}");
        }
        let torn = folder.join("torn");
        std::fs::write(&torn, format!("{header}\n{entry}\n{{\"at\":"))
            .expect("target can be written");
        assert_eq!(read(&[torn]).expect("a trace")[0].entries.len(), 1);
        let error = read(&[folder.join("missing")]).expect_err("no file");
        assert!(error.contains("cannot be read"), "{error}");
    }
}
