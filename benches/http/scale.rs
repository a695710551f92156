//! Answers of large databases compared with the same answers of small ones: longer logs, more licenses, narrower
//! licenses.
//!
//! Both logs have a few licenses that see all and more that see one record in 1,000: as many as are built within two
//! minutes. The database of usual size with 1,000 licenses shows the cost of many licenses.

use std::sync::Arc;

use http::StatusCode;

use crate::client::{Exchange, Load, fetch};
use crate::support::feed::{PAGE, Position};
use crate::support::machine::{Table, median};
use crate::support::world::{Share, Size, World, mixed_licenses};
use crate::{Args, Caller, Driven, FEED, ROTATED, Real, feed_tokens, in_turn};

/// Lengths of the logs.
const LOGS: (u64, u64) = (10_000, 1_000_000);
/// Licenses of both logs that see all; the first one is measured.
const FULL: usize = 2;
/// Licenses of both logs that see one record in 1,000.
const NARROW: usize = 20;
/// Numbers of licenses at the usual size.
const LICENSES: (usize, usize) = (1, 1_000);
/// Entries of a page of a narrow license: fewer than half of its feed, which the middle page has at the most.
const NARROW_LIMIT: usize = 400;

/// A page of a database.
#[derive(Clone, Copy)]
struct Page<'w> {
    real: &'w Real,
    license: usize,
    position: Position,
    /// The number of distinct pages that are requested in turn.
    distinct: usize,
    limit: usize,
}

/// Prints the ratios.
pub async fn compare(args: &Args) {
    let shares = [vec![Share::All; FULL], vec![Share::Thousandth; NARROW]].concat();
    let [short, long] = [LOGS.0, LOGS.1]
        .map(|log| Real::start(World::build(Size::of_log(log), &shares), &args.log));
    let [few, many] = [LICENSES.0, LICENSES.1]
        .map(|count| Real::start(World::build(Size::USUAL, &mixed_licenses(count)), &args.log));
    for real in [&short, &long, &few, &many] {
        real.server.settle();
    }
    let full = |real, position, distinct| Page {
        real,
        license: 0,
        position,
        distinct,
        limit: PAGE,
    };
    let pairs = [
        (
            "head page, log of 1M over 10k",
            full(&long, Position::Head, 1),
            full(&short, Position::Head, 1),
        ),
        (
            "middle page, 1M over 10k",
            full(&long, Position::Middle, 1),
            full(&short, Position::Middle, 1),
        ),
        (
            "middle page, not asked before",
            full(&long, Position::Middle, ROTATED),
            full(&short, Position::Middle, ROTATED),
        ),
        (
            "middle page of 1M, license of 1 in 1,000 over full",
            Page {
                license: FULL,
                limit: NARROW_LIMIT,
                ..full(&long, Position::Middle, 1)
            },
            Page {
                limit: NARROW_LIMIT,
                ..full(&long, Position::Middle, 1)
            },
        ),
        (
            "head page, 1,000 licenses over 1",
            full(&many, Position::Head, 1),
            full(&few, Position::Head, 1),
        ),
    ];
    let mut table = Table::new(&[
        "time of an answer, large over small",
        "conns",
        "KB",
        "KB",
        "per s",
        "per s",
        "ratio",
    ]);
    for (name, large, small) in pairs {
        let (large_pages, small_pages) = (large.exchanges().await, small.exchanges().await);
        let connections = args.connections[0];
        let (slow, fast) = in_turn(
            args,
            connections,
            Driven {
                server: &large.real.server,
                exchanges: &large_pages,
            },
            Driven {
                server: &small.real.server,
                exchanges: &small_pages,
            },
        )
        .await;
        table.add(&[
            &name,
            &connections,
            &(large_pages[0].body_bytes / 1_000),
            &(small_pages[0].body_bytes / 1_000),
            &format!("{:.0}", median(slow.iter().map(|round| round.load.per_s()))),
            &format!("{:.0}", median(fast.iter().map(|round| round.load.per_s()))),
            &format!(
                "{:.2}",
                median(
                    slow.iter()
                        .zip(&fast)
                        .map(|(slow, fast)| ratio(&slow.load, &fast.load))
                )
            ),
        ]);
    }
    println!();
    table.print();
    println!();
    let mut memory = Table::new(&["memory", "now MiB", "at most MiB"]);
    for (name, real) in [
        ("a log of 1M", &long),
        ("a log of 10k", &short),
        ("1,000 licenses", &many),
    ] {
        let (now, most) = real.server.memory_mib();
        memory.add(&[&name, &format!("{now:.0}"), &format!("{most:.0}")]);
    }
    memory.print();
}

fn ratio(slow: &Load, fast: &Load) -> f64 {
    fast.per_s() / slow.per_s()
}

impl Page<'_> {
    async fn exchanges(self) -> Arc<[Exchange]> {
        let Page {
            real,
            license,
            position,
            distinct,
            limit,
        } = self;
        let caller = Caller {
            address: real.server.address,
            key: &real.world.keys[license],
        };
        let tokens = feed_tokens(&real.world, license, position, distinct);
        let mut exchanges = Vec::with_capacity(tokens.len());
        for token in tokens {
            let request = caller.request(&format!("{FEED}?since={token}&limit={limit}"), "");
            let body_bytes = fetch(caller.address, &request).await.body.len();
            exchanges.push(Exchange {
                request,
                status: StatusCode::OK,
                body_bytes,
                tolerance: 0,
            });
        }
        exchanges.into()
    }
}
