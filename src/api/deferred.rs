//! Answers that have to wait: for the disk, for what is built at its first use, for newer commits, for an export.
//!
//! A service is asked on threads that many callers share, so it answers at once what needs no waiting. The rest it hands
//! back, checked and counted, to be gone on with in a thread that may wait.

use std::sync::Arc;

use super::caller::Caller;
use super::exports::ExportCall;
use super::rate::Window;
use super::request::Request;
use super::response::Response;
use crate::contract::Route;
use crate::model::KeyRecord;

/// What the making of an answer may wait for. Whoever may wait for one may wait for those before it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// For nothing: what it takes is in memory.
    Nothing,
    /// For the disk, and for a page that nobody asked for before.
    Reading,
    /// For what filters run over, which is built at its first use.
    Building,
    /// For a look at the file, and for the commit that it finds.
    Looking,
}

/// What becomes of a request.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all answers are ready, and are moved on at once")]
pub enum Answer {
    /// The whole answer.
    Ready(Response),
    /// An answer that has to wait: [`super::Service::resume`] goes on with it.
    Deferred(Box<Deferred>),
    /// An export that is to be built, or found built: [`super::Service::finish`] makes the answer of it.
    Export(Box<Deferred>, Arc<ExportCall>),
}

/// A request that passed all checks up to the rate, and waits. It is counted, and must not be counted again.
#[derive(Debug)]
pub struct Deferred {
    pub(super) asked: Asked,
    pub(super) passed: Passed,
    pub(super) wait: Wait,
}

impl Deferred {
    /// What it has to wait for.
    pub fn wait(&self) -> Wait {
        self.wait
    }

    /// The id of the key that it counts for.
    pub fn key_id(&self) -> &str {
        self.asked.key.as_ref().map_or("", |key| &key.id)
    }
}

/// A request, and what the finishing of its answer needs to know, filled in as checks pass.
#[derive(Debug)]
pub(super) struct Asked {
    pub request: Request,
    pub request_id: String,
    pub window: Option<Window>,
    pub key: Option<Arc<KeyRecord>>,
    pub pattern: &'static str,
}

/// Who passed key, address and rate, and what they ask for.
#[derive(Debug)]
pub(super) struct Passed {
    pub caller: Caller,
    pub route: Route,
    /// The looks at the file that had begun when the request came.
    pub looks: u64,
}

/// What a route answers.
pub(super) enum Outcome {
    Response(Response),
    /// It would have to wait for more than it may.
    Later(Wait),
    Export(ExportCall),
}

impl From<Response> for Outcome {
    fn from(response: Response) -> Outcome {
        Outcome::Response(response)
    }
}
