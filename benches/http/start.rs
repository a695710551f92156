//! From the start of a process to its first answer: the real server compared with the bare one. And the first answers
//! and the memory of larger databases.

use std::fmt::Display;
use std::time::Instant;

use http::StatusCode;

use crate::child::Server;
use crate::client::fetch;
use crate::exchange::{self, ROW_HEADER, Recorded, parse_head};
use crate::support::feed::{PAGE, Position};
use crate::support::machine::{Table, median};
use crate::support::world::{Share, Size, World};
use crate::{Args, Caller, FEED, feed_tokens, filters, start_real, start_static, support};

/// Times that each server is started.
const STARTS: usize = 9;
/// The same for the table of sizes.
const SIZE_STARTS: usize = 3;
/// The log lengths that are measured on request.
const LARGE_LOGS: [u64; 2] = [100_000, 1_000_000];

/// Prints the times of first answers.
pub async fn compare(args: &Args) {
    if !"first answer after start".contains(&args.rows) {
        return;
    }
    let mut table = Table::new(&[
        "first answer after start",
        "medfeed ms",
        "static ms",
        "ratio",
    ]);
    let mut sizes = Table::new(&[
        "each asked once",
        "first ms",
        "feed page ms",
        "filter ms",
        "export ms",
        "MiB",
    ]);
    let large = LARGE_LOGS.iter().filter(|_| support::is_large());
    let large = large.map(|log| (format!("a log of {log}"), Size::of_log(*log)));
    for (name, size) in [("usual size".to_owned(), Size::USUAL)]
        .into_iter()
        .chain(large)
    {
        let world = World::build(size, &[Share::All]);
        if size == Size::USUAL {
            add(&mut table, args, &name, &world).await;
        }
        add_size(&mut sizes, args, &name, &world).await;
    }
    println!();
    table.print();
    println!();
    sizes.print();
}

/// Requests some answers from a new server, once each. Adds a row with their milliseconds, the first including the
/// start, and with the memory after them. All figures are medians of a few servers.
async fn add_size(table: &mut Table, args: &Args, name: &str, world: &World) {
    let token = |position| feed_tokens(world, 0, position, 1).swap_remove(0);
    let page = format!("{FEED}?since={}&limit={PAGE}", token(Position::Middle));
    let targets = [
        page,
        filters().swap_remove(0).0,
        "/v1/exports/conferences".to_owned(),
    ];
    let poll = format!("{FEED}?since={}", token(Position::NothingNew));
    let mut columns = vec![Vec::new(); targets.len() + 2];
    for _ in 0..if args.rounds == 1 { 1 } else { SIZE_STARTS } {
        let began = Instant::now();
        let server = start_real(world.path(), &args.log);
        let caller = Caller {
            address: server.address,
            key: &world.keys[0],
        };
        let mut began = Some(began);
        for (column, target) in columns.iter_mut().zip([&poll].into_iter().chain(&targets)) {
            let began = began.take().unwrap_or_else(Instant::now);
            let request = caller.request(target, "Accept-Encoding: gzip\r\n");
            let answer = fetch(server.address, &request).await;
            column.push(began.elapsed().as_secs_f64() * 1e3);
            assert_eq!(parse_head(&answer.head).0, StatusCode::OK, "{target}");
        }
        columns[targets.len() + 1].push(server.memory_mib().0);
    }
    let medians = columns
        .iter()
        .map(|column| format!("{:.1}", median(column.iter().copied())));
    let cells: Vec<String> = [name.to_owned()].into_iter().chain(medians).collect();
    table.add(
        &cells
            .iter()
            .map(|cell| cell as &dyn Display)
            .collect::<Vec<_>>(),
    );
}

async fn add(table: &mut Table, args: &Args, size: &str, world: &World) {
    let poll = format!(
        "{FEED}?since={}",
        feed_tokens(world, 0, Position::NothingNew, 1)[0]
    );
    let record = {
        let real = start_real(world.path(), &args.log);
        Caller {
            address: real.address,
            key: &world.keys[0],
        }
        .records(1)
        .await
        .swap_remove(0)
        .0
    };
    for (name, target) in [("feed, nothing new", &poll), ("single record", &record)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let starts = if args.rounds == 1 { 1 } else { STARTS };
        let mut times = Vec::new();
        for _ in 0..starts {
            let (own, recorded) =
                first_answer(|| start_real(world.path(), &args.log), world, target).await;
            exchange::save(folder.path(), 0, &recorded);
            let (bare, _) = first_answer(|| start_static(folder.path()), world, target).await;
            times.push((own, bare));
        }
        table.add(&[
            &format!("{name}, {size}"),
            &format!("{:.1}", median(times.iter().map(|(own, _)| *own))),
            &format!("{:.1}", median(times.iter().map(|(_, bare)| *bare))),
            &format!("{:.1}", median(times.iter().map(|(own, bare)| own / bare))),
        ]);
    }
}

/// Starts a server and sends it a request. Returns the milliseconds from before its start to the answer's last byte.
async fn first_answer(
    start: impl FnOnce() -> Server,
    world: &World,
    target: &str,
) -> (f64, Recorded) {
    let began = Instant::now();
    let server = start();
    let caller = Caller {
        address: server.address,
        key: &world.keys[0],
    };
    let request = caller.request(target, &format!("{ROW_HEADER}: 0\r\n"));
    let answer = fetch(server.address, &request).await;
    let elapsed = began.elapsed();
    assert_eq!(parse_head(&answer.head).0, StatusCode::OK, "{target}");
    (elapsed.as_secs_f64() * 1e3, answer)
}
