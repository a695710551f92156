//! The check finds no fault after any history, and hidden changes change no answer.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use medfeed::model::Dataset;

use super::edits::{Change, first_imports, imports};
use super::feeds::clocks;
use super::holds;
use super::system::System;
use super::world::scopes;
use crate::harness::counted;

#[test]
fn the_check_finds_no_fault_after_any_history() {
    let edits = vec(
        (
            clocks(),
            imports(),
            any::<Index>(),
            proptest::option::weighted(0.3, scopes()),
        ),
        1..30,
    );
    let done = Cell::new(0);
    holds(
        24,
        (first_imports(), vec(scopes(), 0..5), edits),
        |(first, scopes, edits)| {
            let mut system = System::with(&first, &scopes);
            done.set(done.get() + edits.len());
            for (seconds, changes, license, scope) in edits {
                system.pass_s(seconds);
                system.import(&changes);
                if let Some(scope) = scope {
                    let license = license.index(system.world.licenses.len() + 1);
                    system.set_license(license, &scope);
                }
            }
            system.check();
        },
    );
    counted(done.get(), "model steps");
}

/// The answers to all requests of a license, as bytes, including requests with some of its tokens.
fn answers(system: &System, license: usize, tokens: &[(Dataset, String)]) -> Vec<Vec<u8>> {
    let mut targets = Vec::new();
    for dataset in Dataset::ALL {
        let since = "updated_since=2000-01-01";
        for query in ["", "?limit=2", "?q=ca", "?updated_since=2000-01-01&limit=1"] {
            targets.push(format!("/v1/{dataset}{query}"));
        }
        targets.extend((1..10).map(|id| format!("/v1/{dataset}/{id}")));
        targets.extend(
            [
                "".to_owned(),
                format!("?{since}"),
                format!("?{since}&limit=2"),
            ]
            .map(|query| format!("/v1/{dataset}/changes{query}")),
        );
        targets.extend(
            ["jsonl", "csv"].map(|format| format!("/v1/exports/{dataset}?format={format}")),
        );
        targets.extend(
            ["tags", "organizations"].map(|list| format!("/v1/reference/{list}?dataset={dataset}")),
        );
    }
    targets.extend(tokens.iter().flat_map(|(dataset, token)| {
        // With `wait`, an answer without news is marked as one. The connection waits, not the service.
        words!["" "&limit=1" "&resync=diff" "&wait=30" "&resync=diff&wait=30"]
            .map(|query| format!("/v1/{dataset}/changes?since={token}{query}"))
    }));
    targets.push("/v1/conferences?therapy_area=Oncology&limit=1".to_owned());
    targets.push("/v1/conferences?country=Japan&year=2025".to_owned());
    targets.push("/v1/reference/therapy-areas".to_owned());
    let bytes = |target: &String| {
        let reply = system.get(license, target);
        let mut bytes = format!("{target} {}\n", reply.status).into_bytes();
        for (name, value) in &reply.headers {
            // The request's id and its rate window always differ.
            if name != "x-request-id" && !name.as_str().starts_with("ratelimit-") {
                bytes.extend(
                    name.as_str()
                        .bytes()
                        .chain(*b": ")
                        .chain(value.as_bytes().iter().copied())
                        .chain(*b"\n"),
                );
            }
        }
        if reply
            .headers
            .get("content-type")
            .is_none_or(|kind| kind != "application/problem+json")
        {
            bytes.extend(&reply.body);
        }
        bytes
    };
    targets.iter().map(bytes).collect()
}

/// The tokens of a license at this moment.
fn tokens_of(system: &System, license: usize) -> Vec<(Dataset, String)> {
    let token = |dataset| Some((dataset, system.export(license, dataset)?.token));
    Dataset::ALL.into_iter().filter_map(token).collect()
}

#[test]
fn hidden_records_change_no_byte() {
    let hidden_edits = vec((clocks(), imports()), 1..8);
    let strategy = (first_imports(), scopes(), scopes(), hidden_edits);
    let pairs = Cell::new(0);
    holds(20, strategy, |(first, scope, other, edits)| {
        let mut system = System::with(&[], &[scope.clone(), other]);
        let mut tokens = tokens_of(&system, 0);
        system.import(&first);
        tokens.append(&mut tokens_of(&system, 0));
        for (seconds, changes) in edits {
            system.pass_s(seconds);
            // Keep only the changes of records that the license shows neither before nor after.
            let hidden: Vec<Change> = changes
                .into_iter()
                .filter(|change| match change {
                    Change::Put(dataset, id, record) => {
                        !scope.sees(*dataset, record)
                            && !system.world.visible(0, *dataset).contains(id)
                    }
                    Change::Remove(dataset, id) => !system.world.visible(0, *dataset).contains(id),
                    Change::Organization(..)
                    | Change::Tag(..)
                    | Change::DropOrganization(_)
                    | Change::DropTag(_) => false,
                })
                .collect();
            let before = answers(&system, 0, &tokens);
            system.import(&hidden);
            for (before, after) in before.iter().zip(answers(&system, 0, &tokens)) {
                pairs.set(pairs.get() + 1);
                assert!(
                    *before == after,
                    "{hidden:?} changed an answer:\n{}\nto\n{}",
                    String::from_utf8_lossy(before),
                    String::from_utf8_lossy(&after)
                );
            }
        }
    });
    counted(pairs.get(), "pairs of answers");
}
