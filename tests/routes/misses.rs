//! Answers that are not cached yet: each is built once, for all callers that wait for it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use medfeed::api::Response;
use serde_json::json;

use crate::harness::{World, patch};

/// Requests whose answers are built on a thread of their own. Other answers take so little time that two callers may
/// build one each.
const TARGETS: [&str; 5] = words![
    "/v1/conferences?updated_since=2000-01-01" "/v1/conferences/changes?updated_since=2000-01-01"
    "/v1/exports/conferences" "/v1/exports/conferences?format=csv"
    "/v1/journals/changes?updated_since=2000-01-01"
];

type Asker<'w> = Pin<Box<dyn Future<Output = Response> + 'w>>;

/// Waits for all futures. Polls each once before any is done.
async fn join_all(mut askers: Vec<Asker<'_>>) -> Vec<Response> {
    let mut responses: Vec<Option<Response>> = askers.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (asker, response) in askers.iter_mut().zip(&mut responses) {
            if response.is_none()
                && let Poll::Ready(ready) = asker.as_mut().poll(cx)
            {
                *response = Some(ready);
            }
        }
        if responses.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    responses.into_iter().flatten().collect()
}

/// Checks that all have the same bytes in memory, so one of them was built.
fn assert_shared(target: &str, responses: &[Response]) {
    for response in responses {
        assert_eq!(response.status, 200, "{target}");
        assert_eq!(
            response.body.as_ptr(),
            responses[0].body.as_ptr(),
            "{target}: it was made more than once"
        );
    }
}

#[test]
fn equal_requests_at_once_get_one_answer() {
    for encoding in ["identity", "gzip"] {
        let world = World::small();
        for target in TARGETS {
            let asker = || -> Asker<'_> { Box::pin(world.ask_at_once("full", target, encoding)) };
            let responses = world.run(join_all((0..6).map(|_| asker()).collect()));
            assert_shared(target, &responses);
            let later = world.run(asker());
            let expected = responses[0].body.as_ptr();
            assert_eq!(later.body.as_ptr(), expected, "{target}: it was not cached");
        }
    }
}

#[test]
fn an_answer_whose_first_caller_leaves_is_built_for_the_next() {
    let world = World::small();
    for target in TARGETS {
        let asker = || -> Asker<'_> { Box::pin(world.ask_at_once("full", target, "identity")) };
        let mut askers: Vec<_> = (0..4).map(|_| asker()).collect();
        world.run(async {
            let count_ready = |cx: &mut Context<'_>| {
                Poll::Ready(
                    askers
                        .iter_mut()
                        .filter_map(|asker| asker.as_mut().poll(cx).is_ready().then_some(()))
                        .count(),
                )
            };
            // On a busy machine the first one may be done before the others start.
            if poll_fn(count_ready).await == 0 {
                // The one that builds the answer leaves, and so does one that waits for it.
                askers.drain(..2);
                assert_shared(target, &join_all(askers).await);
            }
        });
    }
}

#[test]
fn a_request_after_a_commit_gets_no_older_answer() {
    let world = World::small();
    let targets = words![
        "/v1/conferences" "/v1/conferences/2" "/v1/conferences?q=on&limit=500" "/v1/exports/conferences"
    ];
    for (version, target) in (1..).zip(targets) {
        let asker = || -> Asker<'_> { Box::pin(world.ask_at_once("full", target, "identity")) };
        let mut earlier = asker();
        let begun = world.run(poll_fn(|cx| Poll::Ready(earlier.as_mut().poll(cx))));
        world.conferences(&[patch(2, json!({"venue": format!("version {version}")}))]);
        // The later one waits first, while the earlier one still has the right to build the answer.
        let (earlier, later) = match begun {
            Poll::Pending => {
                let mut responses = world.run(join_all(vec![asker(), earlier]));
                (responses.pop().unwrap(), responses.pop().unwrap())
            }
            // On a busy machine the earlier answer may be finished at once.
            Poll::Ready(earlier) => (earlier, world.run(asker())),
        };
        assert_eq!(earlier.status.as_u16(), 200, "{target}");
        assert_eq!(later.status.as_u16(), 200, "{target}");
        assert_ne!(
            later.body, earlier.body,
            "{target}: an answer of before the commit"
        );
        assert_eq!(later.body, world.run(asker()).body, "{target}");
    }
}
