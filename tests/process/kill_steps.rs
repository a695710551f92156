//! The steps at which a process is killed between a write and the answers of replicas.

use std::collections::BTreeSet;

use medfeed::replicate::layout;

use super::s3::Fault;

/// The steps that every long run reaches, besides those of [`Moment::all`].
const OTHERS: [&str; 9] = [
    "publisher starting",
    "replica applying: new position",
    "replica applying: old position",
    "replica at a random moment",
    "replica loading in the place of another",
    "replica loading the first time",
    "replica starting",
    "writer after its commit",
    "writer before its commit",
];

/// All steps that every long run reaches, over the network or in a folder.
pub fn steps(is_s3: bool) -> BTreeSet<String> {
    let is_met = |moment: &Moment| {
        if is_s3 {
            !moment.method.is_empty()
        } else {
            moment.folder().is_some()
        }
    };
    let moments = Moment::all(!is_s3).into_iter().filter(is_met);
    let own = if is_s3 {
        "replica polling"
    } else {
        "publisher at a random moment"
    };
    let others = OTHERS.into_iter().chain([own]).map(str::to_owned);
    moments
        .map(|moment| step(moment.method, moment.name, moment.fault, moment.restores))
        .chain(others)
        .collect()
}

/// The moment at which a publisher is killed: a request that it makes, or in a folder the visible result of it.
#[derive(Clone, Copy)]
pub struct Moment {
    /// Empty for any.
    pub method: &'static str,
    /// A part of the object's name.
    pub name: &'static str,
    pub fault: Fault,
    /// Whether the published state is a restored one.
    pub restores: bool,
}

impl Moment {
    /// All moments. The name of a deleted object is chosen later. In a folder, a step is visible only after it is done.
    pub fn all(is_folder: bool) -> Vec<Moment> {
        let objects = ["/log/", "/parts/", "/states/"];
        let mut moments = Vec::new();
        for fault in if is_folder {
            &[Fault::Held][..]
        } else {
            &[Fault::Held, Fault::Waiting]
        } {
            let mut add = |method, name, restores| {
                moments.push(Moment {
                    method,
                    name,
                    fault: *fault,
                    restores,
                })
            };
            objects.iter().for_each(|name| add("PUT", name, false));
            objects.iter().for_each(|name| add("PUT", name, true));
            [
                ("PUT", "/alive"),
                ("DELETE", "/states/"),
                ("GET", ""),
                ("", ""),
            ]
            .into_iter()
            .for_each(|(method, name)| add(method, name, false));
        }
        moments
    }

    /// The folder of the bucket that is observed.
    pub fn folder(&self) -> Option<&'static str> {
        [layout::LOG, layout::STATES, layout::PARTS]
            .into_iter()
            .find(|folder| self.name == format!("/{folder}/"))
    }
}

/// The moments at which a replica is killed.
#[derive(Clone, Copy)]
pub enum Death {
    Anytime,
    Polling,
    Applying,
    LoadingAnew,
    Loading,
    Starting,
}

pub const DEATHS: [Death; 8] = [
    Death::Anytime,
    Death::Polling,
    Death::Applying,
    Death::Applying,
    Death::LoadingAnew,
    Death::Loading,
    Death::Loading,
    Death::Starting,
];

/// Faults of the store meanwhile: the method, a part of the name, and the fault.
pub const FAULTS: [(&str, &str, Fault); 9] = cases![
    "PUT", "/log/", Fault::LostAnswer;
    "PUT", "/log/", Fault::Code(409, "ConditionalRequestConflict");
    "PUT", "/parts/", Fault::LostAnswer;
    "PUT", "/states/", Fault::LostAnswer;
    "PUT", "", Fault::Status(503);
    "PUT", "", Fault::Code(409, "OperationAborted");
    "GET", "", Fault::HalfBody;
    "GET", "", Fault::LostAnswer;
    "DELETE", "", Fault::LostAnswer;
];

/// The name of a publisher's step.
pub fn step(method: &str, target: &str, fault: Fault, restores: bool) -> String {
    let when = if fault == Fault::Waiting {
        "before"
    } else {
        "after"
    };
    let what = match (method, target) {
        (_, target) if target.contains("/probe") => return "publisher starting".to_owned(),
        ("DELETE", _) => return "publisher sweeping".to_owned(),
        ("PUT", target) if target.contains("/log/") => "an entry",
        ("PUT", target) if target.contains("/parts/") => "a part",
        ("PUT", target) if target.contains("/states/") => "a manifest",
        ("PUT", target) if target.contains("/alive") => "a heartbeat",
        ("PUT", target) => panic!("{target}"),
        _ => "reading",
    };
    format!(
        "publisher {}{when} {what}",
        if restores { "of a restored state " } else { "" }
    )
}
