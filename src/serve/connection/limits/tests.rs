//! Tests of the limits of connections, with paused time.

use std::net::Ipv4Addr;

use tokio::time::advance;

use super::*;

/// The key of a request: none, a key that only its network has, or one that all share.
#[derive(Clone, Copy, Debug)]
enum With {
    N,
    K,
    S,
}
use With::{K, N, S};

#[derive(Clone, Copy, Debug)]
enum Does {
    New,
    /// It got a response.
    Idle(With),
    Answering,
    /// It reads this number of bytes per second.
    Reading(With, usize),
    LongPolling,
}
use Does::{Answering, Idle, LongPolling, New, Reading};

/// The position of the closed connection, or the limit if none can be closed.
type Outcome = Result<usize, NoSlot>;

/// A connection's network, activity, and the seconds for which it lasts.
type Member = (u8, Does, u64);

fn network(number: u8) -> Option<IpAddr> {
    Some(Ipv4Addr::new(192, 0, 2, number).into())
}

fn connections(connections: usize, connections_per_address: usize) -> Arc<Connections> {
    Connections::new(Limits {
        connections,
        connections_per_address,
        ..Limits::default()
    })
}

fn start(does: Does, connection: &Connection) {
    let with = match does {
        New => return,
        Idle(with) | Reading(with, _) => with,
        Answering | LongPolling => K,
    };
    let own_key = KeyHash::of(format!("{:?}", connection.network).as_bytes());
    assert!(connection.start_answer());
    match (does, with) {
        (LongPolling, _) => connection.start_long_poll(own_key),
        (Answering, _) => {}
        (_, N) => connection.finish_answer(None),
        (_, K) => connection.finish_answer(Some(own_key)),
        (_, S) => connection.finish_answer(Some(KeyHash::of(b"shared"))),
    }
    if let Idle(_) = does {
        connection.finish_sending();
    }
}

/// Opens connections, each at its time.
async fn open(connections: &Arc<Connections>, members: &[Member]) -> Vec<Slot> {
    let mut slots: Vec<Option<Slot>> = members.iter().map(|_| None).collect();
    for second in (0..=members.iter().map(|member| member.2).max().unwrap()).rev() {
        for ((number, does, since), slot) in members.iter().zip(&mut slots) {
            if *since == second {
                let new = connections.enter(network(*number)).expect("a free slot");
                start(*does, &new.connection);
                *slot = Some(new);
            } else if let (Reading(_, rate), Some(slot)) = (*does, &slot) {
                slot.connection.note_sent(rate);
                connections.close_overdue();
            }
        }
        advance(Duration::from_millis(if second == 0 { 1 } else { 1000 })).await;
    }
    slots.into_iter().flatten().collect()
}

/// Lets a connection of a network enter at a limit, and returns the outcome.
fn closed_for(connections: &Arc<Connections>, slots: &[Slot], new: u8) -> Outcome {
    let full = connections
        .enter(network(new))
        .expect_err("a limit is reached");
    let is_closed = |slot: &Slot| slot.connection.close_reason().is_some();
    let Some(closed) = slots.iter().position(is_closed) else {
        return Err(full);
    };
    assert!(!full.is_refused, "its slot is free");
    assert!(connections.enter(network(new)).is_ok(), "its slot is free");
    let count = slots.iter().filter(|slot| is_closed(slot)).count();
    assert_eq!(count, 1, "one is enough");
    Ok(closed)
}

#[tokio::test(start_paused = true)]
async fn connections_are_closed_in_one_order() {
    const GOOD: usize = 65_536;
    let waits = Err(NoSlot {
        limit: ConnectionLimit::Total,
        is_refused: false,
    });
    // Every connection has a network of its own. The first one of the order is closed, if any.
    let cases: [([(Does, u64); 3], Outcome); 24] = cases![
        [(Idle(N), 3), (Idle(N), 5), (Idle(N), 4)], Ok(1);
        [(Idle(N), 3), (New, 5), (Reading(N, 0), 9)], Ok(2);
        [(Idle(K), 30), (Idle(N), 2), (New, 0)], Ok(1);
        [(Idle(K), 30), (Reading(N, 5), 2), (New, 0)], Ok(1);
        [(Idle(K), 30), (Answering, 60), (New, 0)], Ok(0);
        [(Reading(N, 5000), 9), (Reading(K, 10), 9), (Answering, 9)], Ok(0);
        [(Reading(N, 5000), 9), (Reading(N, 10), 9), (Answering, 9)], Ok(1);
        [(Reading(N, GOOD), 99), (Reading(N, 10), 9), (Answering, 9)], Ok(1);
        // A key protects no slow reader.
        [(Idle(K), 5), (Reading(K, 10), 60), (Answering, 9)], Ok(1);
        [(Reading(K, 4096), 2), (Reading(K, GOOD), 99), (Answering, 9)], Ok(0);
        [(Reading(K, 60_000), 20), (Reading(K, 50_000), 9), (New, 0)], Ok(1);
        // Of owners, the one with the most connections loses one first.
        [(Idle(K), 60), (Reading(S, 4096), 9), (Reading(S, 4096), 20)], Ok(2);
        [(Idle(S), 9), (Idle(S), 12), (Idle(K), 50)], Ok(1);
        [(Idle(S), 9), (Reading(S, GOOD), 12), (Idle(K), 50)], Ok(0);
        [(Reading(S, GOOD), 9), (Reading(S, GOOD), 12), (Idle(K), 50)], Ok(2);
        // Long polls are last, but for connections in their grace period.
        [(LongPolling, 90), (Idle(K), 5), (Answering, 9)], Ok(1);
        [(LongPolling, 90), (Idle(K), 0), (Answering, 9)], Ok(0);
        [(LongPolling, 12), (LongPolling, 15), (Answering, 99)], Ok(1);
        [(LongPolling, 6), (LongPolling, 9), (New, 0)], waits;
        // There is a grace period.
        [(New, 0), (Idle(N), 0), (Idle(K), 7)], Ok(2);
        [(Idle(K), 0), (New, 0), (Answering, 99)], waits;
        [(Reading(S, 0), 0), (Idle(S), 0), (Idle(S), 0)], waits;
        // Connections that are served keep their slots.
        [(Answering, 99), (Answering, 99), (Answering, 99)], waits;
        [(Reading(N, GOOD), 99), (Reading(K, 2 * GOOD), 99), (Answering, 99)], waits;
    ];
    for (members, expected) in cases {
        let connections = connections(3, 3);
        let members: Vec<Member> = (1..)
            .zip(members)
            .map(|(number, (does, since))| (number, does, since))
            .collect();
        let slots = open(&connections, &members).await;
        assert_eq!(closed_for(&connections, &slots, 9), expected, "{members:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_address_with_the_most_connections_loses_one_first() {
    let [waits, refused] = [false, true].map(|is_refused| {
        Err(NoSlot {
            limit: ConnectionLimit::Total,
            is_refused,
        })
    });
    // The networks of four new connections in four slots and of a fifth one, and the closed connection.
    let cases = [
        ([1, 1, 1, 2], 9, Ok(0)),
        ([2, 1, 1, 1], 9, Ok(1)),
        ([1, 2, 2, 3], 9, Ok(1)),
        ([1, 2, 3, 4], 9, waits),
        // An address that has the most connections replaces none of others.
        ([1, 1, 1, 2], 2, Ok(0)),
        ([1, 1, 1, 2], 1, refused),
        ([1, 1, 2, 2], 1, refused),
        ([1, 1, 2, 3], 2, Ok(0)),
    ];
    for (networks, new, expected) in cases {
        let connections = connections(4, 64);
        let slots = open(&connections, &networks.map(|number| (number, New, 0))).await;
        let found = closed_for(&connections, &slots, new);
        assert_eq!(found, expected, "{networks:?}, then {new}");
    }
    // Three connections of network 2 beside an idle one of network 1, which has a key, or its long poll.
    let cases = [
        (Idle(K), New, 0, 3, Ok(1)),
        (Idle(K), Reading(N, 0), 0, 3, Ok(1)),
        (Idle(K), Idle(K), 0, 3, Ok(0)),
        (Idle(K), Idle(K), 2, 3, Ok(1)),
        (Idle(K), Reading(K, 0), 9, 3, Ok(1)),
        (Idle(K), New, 2, 2, Ok(1)),
        (Idle(K), Idle(K), 2, 2, Ok(1)),
        (Idle(K), New, 0, 2, refused),
        // They belong to a key, so the address of the new one has none.
        (Idle(K), Idle(K), 0, 2, Ok(0)),
        (LongPolling, New, 0, 2, refused),
    ];
    for (single, does, since, new, expected) in cases {
        let connections = connections(4, 64);
        let crowd = (2, does, since);
        let slots = open(&connections, &[(1, single, 50), crowd, crowd, crowd]).await;
        let found = closed_for(&connections, &slots, new);
        assert_eq!(found, expected, "{single:?} beside {does:?}, then {new}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_makes_room_among_its_own() {
    let refused = Err(NoSlot {
        limit: ConnectionLimit::Address,
        is_refused: true,
    });
    // Network 1 may have two. The connection of network 2 has been idle for long.
    let cases: [([(Does, u64); 2], Outcome); 13] = [
        ([(LongPolling, 12), (LongPolling, 14)], Ok(1)),
        ([(LongPolling, 9), (LongPolling, 14)], Ok(1)),
        ([(LongPolling, 30), (Reading(N, 10), 7)], Ok(1)),
        ([(LongPolling, 30), (Reading(K, 10), 7)], Ok(1)),
        ([(LongPolling, 30), (Idle(K), 7)], Ok(1)),
        ([(New, 0), (New, 2)], Ok(1)),
        ([(New, 0), (Idle(K), 50)], Ok(1)),
        // A request that is on its way stays, also beside a long poll.
        ([(New, 0), (LongPolling, 30)], Ok(1)),
        ([(Idle(K), 0), (LongPolling, 30)], Ok(1)),
        ([(LongPolling, 3), (LongPolling, 9)], refused),
        ([(New, 0), (LongPolling, 9)], refused),
        ([(Reading(K, 10), 0), (Reading(K, 65_536), 50)], refused),
        ([(Answering, 0), (Answering, 50)], refused),
    ];
    for (members, expected) in cases {
        for slots in [3, 100] {
            let connections = connections(slots, 2);
            let [(first, since), (second, since_too)] = members;
            let members = [(1, first, since), (1, second, since_too), (2, New, 55)];
            let slots = open(&connections, &members[..]).await;
            assert_eq!(closed_for(&connections, &slots, 1), expected, "{members:?}");
        }
    }
    // Trusted proxies have no limit of their own.
    let connections = connections(9, 2);
    let proxied: Vec<_> = (0..9)
        .map(|_| connections.enter(None).expect("a slot"))
        .collect();
    let waits = NoSlot {
        limit: ConnectionLimit::Total,
        is_refused: false,
    };
    assert_eq!(connections.enter(None).expect_err("all are taken"), waits);
    assert_eq!(
        connections
            .enter(None)
            .expect_err("they have a grace period"),
        waits
    );
    advance(GRACE).await;
    assert_eq!(connections.enter(None).expect_err("all are taken"), waits);
    connections.enter(None).expect("one is closed");
    drop(proxied);
}

#[tokio::test(start_paused = true)]
async fn time_limits_end_connections_that_wait_for_their_callers() {
    let (idle, slow) = (Some(CloseReason::Idle), Some(CloseReason::Slow));
    let cases = [
        (New, 59, None),
        (New, 61, idle),
        (Idle(K), 61, idle),
        (Answering, 9999, None),
        (LongPolling, 9999, None),
        (Reading(K, 0), 599, None),
        (Reading(K, 0), 601, slow),
        (Reading(K, 1024), 600, None),
        (Reading(K, 1024), 620, slow),
        (Reading(N, 60_000), 7000, None),
        (Reading(N, 60_000), 7500, slow),
        (Reading(N, 66_000), 9999, None),
    ];
    for (does, seconds, expected) in cases {
        let connections = connections(9, 9);
        let slots = open(&connections, &[(1, does, seconds)]).await;
        connections.close_overdue();
        let reason = slots[0].connection.close_reason();
        assert_eq!(
            reason,
            expected.map(|reason| (reason, CloseCause::Timeout)),
            "{does:?} for {seconds} s"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_answers_no_more_but_a_long_poll() {
    let connections = connections(1, 1);
    let slot = connections.enter(network(1)).expect("a slot");
    advance(Duration::from_secs(1)).await;
    connections.enter(network(2)).expect_err("it is taken");
    slot.connection.closed().await;
    assert!(!slot.connection.start_answer() && !slot.connection.is_answering());
    let expected = Some((CloseReason::Idle, CloseCause::Capacity));
    assert_eq!(slot.connection.close_reason(), expected);

    let slot = connections
        .enter(network(1))
        .expect("it is free before the other one has ended");
    let key = KeyHash::of(b"key");
    slot.connection.start_long_poll(key);
    assert!(!slot.connection.is_answering(), "there is no request");
    start(LongPolling, &slot.connection);
    slot.connection.finish_long_poll();
    connections.enter(network(2)).expect_err("it is taken");
    assert!(slot.connection.close_reason().is_none(), "it is answered");
    slot.connection.start_long_poll(key);
    advance(Duration::from_secs(10)).await;
    connections.enter(network(2)).expect_err("it is taken");
    assert_eq!(slot.connection.woken().await, WaitEnd::Capacity);
    let expected = Some((CloseReason::Waiting, CloseCause::Capacity));
    assert_eq!(slot.connection.close_reason(), expected);
    assert!(slot.connection.is_answering(), "the answer goes out");
}

#[tokio::test(start_paused = true)]
async fn closed_connections_free_their_slots() {
    let connections = connections(2, 2);
    let [first, second] =
        [network(1), None].map(|network| connections.enter(network).expect("a slot"));
    start(Answering, &first.connection);
    start(Answering, &second.connection);
    assert_eq!(
        connections
            .enter(network(1))
            .expect_err("all are taken")
            .limit,
        ConnectionLimit::Total
    );
    let beyond = connections.enter_always(network(1));
    start(Answering, &beyond.connection);
    assert_eq!(
        connections
            .enter(network(1))
            .expect_err("two are taken")
            .limit,
        ConnectionLimit::Address
    );
    drop((second, beyond));
    connections.freed().await;
    let third = connections.enter(network(1)).expect("a slot");
    drop((first, third));
    let table = connections.table.lock();
    assert!(table.open.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_connection_belongs_to_the_key_of_its_last_usable_request() {
    let owners = |connections: &Connections| connections.table.lock().count_by_owner();
    let connections = connections(9, 9);
    let [direct, proxied] =
        [network(1), None].map(|network| connections.enter(network).expect("a slot"));
    let address = Some(Owner::Address(network(1).unwrap()));
    assert_eq!(owners(&connections), HashMap::from([(address, 1)]));
    let [first, second] = [b"first", b"other"].map(|text| KeyHash::of(text));
    let [one, other] = [first, second].map(|key| Some(Owner::Key(key)));
    let steps = [
        (None, [(address, 1)].into()),
        (Some(first), [(one, 2)].into()),
        (None, [(one, 2)].into()),
        (Some(second), [(other, 2)].into()),
    ];
    for (key, expected) in steps {
        for slot in [&direct, &proxied] {
            assert!(slot.connection.start_answer());
            slot.connection.finish_answer(key);
            slot.connection.finish_sending();
        }
        assert_eq!(owners(&connections), expected, "{key:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_may_wait_for_a_long_poll_of_its_address() {
    // Two connections of an address with their phases and ages, and the seconds until a third one gets a slot.
    let cases = [
        ([(LongPolling, 3), (LongPolling, 8)], Some(2)),
        ([(LongPolling, 0), (Answering, 8)], Some(10)),
        ([(Idle(K), 0), (Answering, 8)], Some(1)),
        ([(Answering, 0), (Answering, 8)], None),
    ];
    for (members, expected) in cases {
        let connections = connections(32, 2);
        let members = members.map(|(does, since)| (1, does, since));
        let _slots = open(&connections, &members).await;
        let begun = Instant::now();
        let late = connections.enter_late(network(1)).expect("few wait");
        let slot = late.await;
        let seconds = begun.elapsed().as_secs_f64().round();
        let found = slot.map(|_| seconds);
        assert_eq!(found, expected.map(f64::from), "{members:?}");
    }
    let connections = connections(32, 1);
    let late = || connections.enter_late(network(1));
    let waiting = [late(), late()];
    assert!(waiting.iter().all(Option::is_some), "two of 32");
    assert!(late().is_none(), "two of 32");
    drop(waiting);
    assert!(late().is_some());
}
