//! Damage to the outbox, the rows that wait to be published: nothing is lost, because a whole state is published
//! instead.

use medfeed::replicate::layout;
use redb::{ReadableTable, Table, TableDefinition};

use super::foreign_files::open;
use super::publishing::{commit, published_in_folder};
use super::site::Site;

const OUTBOX: TableDefinition<(u64, u32), &[u8]> = TableDefinition::new("outbox");
const LINKS: TableDefinition<(u8, u64, u8, u64), ()> = TableDefinition::new("links");

pub type Outbox<'t> = Table<'t, (u64, u32), &'static [u8]>;
/// Damages the outbox, given the seqs of the waiting commits.
pub type Damage = fn(&mut Outbox<'_>, &[u64]);

/// Writes to the outbox as no version of this program does.
pub fn damage(site: &Site, damage: Damage) {
    let database = open(&site.db());
    let transaction = database.begin_write().unwrap();
    let mut outbox = transaction.open_table(OUTBOX).unwrap();
    let headers = outbox.iter().unwrap().map(|row| row.unwrap().0.value());
    let headers = headers.filter(|(_, part)| *part == 0);
    let seqs: Vec<u64> = headers.map(|(seq, _)| seq).collect();
    damage(&mut outbox, &seqs);
    drop(outbox);
    transaction.commit().unwrap();
}

#[test]
fn a_damaged_outbox_leads_to_one_whole_state() {
    let cases: [(&str, Damage); 5] = cases![
        "the first header", |outbox, seqs| { drop(outbox.insert((seqs[0], 0), b"rotten".as_slice()).unwrap()) };
        "a later header", |outbox, seqs| { drop(outbox.insert((seqs[1], 0), b"".as_slice()).unwrap()) };
        "a header that is gone", |outbox, seqs| { drop(outbox.remove((seqs[1], 0)).unwrap()) };
        "changes", |outbox, seqs| { drop(outbox.insert((seqs[0], 1), b"rotten".as_slice()).unwrap()) };
        "changes that are gone", |outbox, seqs| { drop(outbox.remove((seqs[1], 1)).unwrap()) };
    ];
    for (what, how) in cases {
        for is_written_first in [false, true] {
            let what = format!("{what}, a commit first: {is_written_first}");
            let (site, place) = published_in_folder();
            commit(&site, 1);
            commit(&site, 2);
            damage(&site, how);
            let told = site.run(["check"]);
            assert_eq!(told.code, Some(1), "{what}: {told:?}");
            assert!(told.stdout.contains("outbox"), "{what}: {told:?}");
            let status = place.run(&site, "--status --json").json();
            assert_eq!(status["published"], false, "{what}: {status}");
            if is_written_first {
                commit(&site, 3);
            }
            let done = place.run(&site, "--once --json");
            assert_eq!(done.code, Some(0), "{what}: {done:?}");
            assert_eq!(done.json()["entries"], 1, "{what}: {done:?}");
            // A commit that meets the damage empties the outbox.
            if !is_written_first {
                assert!(
                    done.stderr.contains("publishing a whole state instead"),
                    "{what}: {done:?}"
                );
            }
            assert!(place.entry(2).header.is_state(), "{what}");
            place.check(&site);
            commit(&site, 4);
            assert_eq!(place.once(&site), 1, "{what}");
            assert!(
                !place.entry(3).header.is_state(),
                "{what}: changes are published again"
            );
            place.check(&site);
            site.check();
        }
    }
}

#[test]
fn compact_drops_a_damaged_outbox() {
    let (site, place) = published_in_folder();
    commit(&site, 1);
    damage(&site, |outbox, seqs| {
        drop(outbox.insert((seqs[0], 1), b"rotten".as_slice()).unwrap())
    });
    site.json(["compact"]);
    site.check();
    assert_eq!(place.once(&site), 1);
    assert!(place.entry(2).header.is_state());
    place.check(&site);
}

#[test]
fn rows_that_contradict_their_digest_go_into_no_state() {
    let (site, place) = published_in_folder();
    let database = open(&site.db());
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(LINKS)
        .unwrap()
        .insert((9, 9, 9, 9), ())
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    commit(&site, 1);
    let refused = place.run(&site, "--once --state-every 0s");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    refused.assert_err("do not add up to their stored digest");
    assert_eq!(place.slots(layout::LOG), vec![1, 2]);
    assert_eq!(place.slots(layout::STATES), vec![1]);
}
