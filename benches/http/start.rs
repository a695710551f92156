//! From the start of a process to its first answer: the real server beside the bare one.

use std::time::Instant;

use http::StatusCode;

use crate::child::Server;
use crate::client::fetch;
use crate::exchange::{self, ROW_HEADER, Recorded, parse_head};
use crate::support::feed::Position;
use crate::support::machine::{Table, median};
use crate::support::world::{Share, Size, World};
use crate::{Args, Caller, FEED, feed_tokens, start_real, start_static, support};

/// Times that each server is started.
const STARTS: usize = 9;
/// The log length that is measured on request.
const LARGE_LOG: u64 = 1_000_000;

/// Prints how long first answers take.
pub async fn compare(args: &Args) {
    if !"first answer after start".contains(&args.rows) {
        return;
    }
    let mut table = Table::new(&["first answer after start", "medfeed ms", "static ms", "ratio"]);
    let usual = World::build(Size::USUAL, &[Share::All]);
    add(&mut table, args, "usual size", &usual).await;
    drop(usual);
    if support::is_large() {
        let large = World::build(Size::of_log(LARGE_LOG), &[Share::All]);
        add(&mut table, args, &format!("a log of {LARGE_LOG}"), &large).await;
    }
    println!();
    table.print();
}

async fn add(table: &mut Table, args: &Args, size: &str, world: &World) {
    let poll = format!("{FEED}?since={}", feed_tokens(world, 0, Position::NothingNew, 1)[0]);
    let record = {
        let real = start_real(world.path(), &args.log);
        Caller { address: real.address, key: &world.keys[0] }.records(1).await.swap_remove(0).0
    };
    for (name, target) in [("feed, nothing new", &poll), ("single record", &record)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let starts = if args.rounds == 1 { 1 } else { STARTS };
        let mut times = Vec::new();
        for _ in 0..starts {
            let (own, recorded) = first_answer(|| start_real(world.path(), &args.log), world, target).await;
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

/// Starts a server and asks it. Returns the milliseconds from before its start to the answer's last byte.
async fn first_answer(start: impl FnOnce() -> Server, world: &World, target: &str) -> (f64, Recorded) {
    let began = Instant::now();
    let server = start();
    let caller = Caller { address: server.address, key: &world.keys[0] };
    let answer = fetch(server.address, &caller.request(target, &format!("{ROW_HEADER}: 0\r\n"))).await;
    let elapsed = began.elapsed();
    assert_eq!(parse_head(&answer.head).0, StatusCode::OK, "{target}");
    (elapsed.as_secs_f64() * 1e3, answer)
}
