//! The result of an import, in words and in JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{ImportArgs, Written};
use crate::cli::change::Changes;
use crate::cli::output::{counted, list_findings};
use crate::import::{FilledFields, Findings, ListCounts, Merged};
use crate::model::{Joined, Printable};
use crate::store::RowCounts;
use crate::store::write::edit::{BatchOutcome, LicenseEffect};

impl ImportArgs {
    /// Describes the bad rows that are left out, the corrections and the new ids.
    fn describe_findings(&self, merged: &Merged) -> String {
        let mut assigned = Findings::default();
        assigned.extend(merged.assigned.iter().cloned());
        let left_out = counted(merged.bad.rows().len(), "bad row") + " left out";
        let corrections = counted(merged.fixes.total(), "correction");
        let new_ids = counted(assigned.total(), "new id");
        let mut text = String::new();
        for (found, count) in [
            (&merged.bad, left_out),
            (&merged.fixes, corrections),
            (&assigned, new_ids),
        ] {
            if !found.is_empty() {
                let lines = list_findings(found, self.read.all_faults).join("\n");
                text += &format!("{lines}\n{count}\n");
            }
        }
        text
    }

    /// Returns the result in words.
    pub(super) fn result_text(&self, written: &Written) -> String {
        let Written {
            merged,
            outcome,
            changes,
        } = written;
        self.describe_findings(merged)
            + &describe_counts(outcome, merged)
            + &describe(outcome, changes.as_ref(), merged.warnings.total())
    }

    /// Returns the result in JSON.
    pub(super) fn result_json(&self, written: &Written) -> Value {
        let Written {
            merged,
            outcome,
            changes,
        } = written;
        let mut json = json!({
            "committed": !self.dry_run,
            "datasets": outcome.rows.datasets,
            "organizations": outcome.rows.organizations,
            "tags": outcome.rows.tags,
            "licenses": outcome.licenses,
            "warning_count": merged.warnings.total(),
            "warnings": merged.warnings.kept(),
            "notes": merged.notes,
            "fix_count": merged.fixes.total(),
            "fixes": merged.fixes.kept(),
            "assigned": merged.assigned,
            "filled": filled_json(&merged.filled),
            "note": self.note,
        });
        if let (Value::Object(json), Value::Object(counts)) = (&mut json, json!(merged.counts)) {
            json.extend(counts);
        }
        if self.allow_faults > 0 {
            json["bad_rows"] = json!(merged.bad.rows().len());
            json["error_count"] = json!(merged.bad.total());
            json["errors"] = json!(merged.bad.kept());
        }
        if let Some(changes) = changes {
            json["changes"] = json!(changes.changes);
            json["license_changes"] = json!(changes.license_changes);
        }
        json
    }
}

/// Returns the number of rows that fill each field, by kind and field.
fn filled_json(filled: &[FilledFields]) -> Value {
    let kinds = filled.iter().map(|of_kind| {
        let fields = of_kind.fields.iter();
        let fields = fields.map(|(field, count)| ((*field).to_owned(), json!(count)));
        (of_kind.kind.to_owned(), fields.collect::<Value>())
    });
    kinds.collect()
}

/// Describes the effects of the rows of lists of others, and the values that any file clears.
fn describe_counts(outcome: &BatchOutcome, merged: &Merged) -> String {
    let counts = &merged.counts;
    if !counts.is_list && counts.unknown == 0 {
        return match counts.cleared {
            0 => String::new(),
            cleared => format!("{} cleared\n", counted(cleared, "value")),
        };
    }
    let named = outcome.rows.named();
    let sum =
        |count: fn(&RowCounts) -> u64| named.iter().map(|(_, counts)| count(counts)).sum::<u64>();
    let spelling = match counts.respelled {
        0 => String::new(),
        respelled => format!(" ({respelled} but for spelling)"),
    };
    let removed = match counts.removed_items {
        0 => String::new(),
        items => format!(", {} of lists removed", counted(items, "item")),
    };
    let contradicting = match counts.contradicting {
        0 => String::new(),
        rows => format!("{} left out by contradicting ISSNs; ", counted(rows, "row")),
    };
    format!(
        "{}{}: {} changed, {} equal{spelling}, {} unknown{}; {contradicting}{} kept stored values; {} cleared{removed}\n",
        describe_filled(&merged.filled),
        counted(counts.rows, "row"),
        counted(sum(|counts| counts.changed), "record"),
        sum(|counts| counts.unchanged),
        counts.unknown,
        fate_of_unknown(counts),
        counted(counts.kept, "empty cell"),
        counted(counts.cleared, "value"),
    )
}

/// Describes how many rows fill each field.
fn describe_filled(filled: &[FilledFields]) -> String {
    let mut text = String::new();
    for FilledFields { kind, rows, fields } in filled {
        let fields = fields.iter();
        let fields = fields.map(|(field, count)| format!("{field} {count}"));
        let verb = if *rows == 1 { "fills" } else { "fill" };
        let rows = counted(*rows, "row");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{kind}: {rows} {verb} {}", fields.joined(", "));
    }
    text
}

/// Describes what happens to the rows without a record.
fn fate_of_unknown(counts: &ListCounts) -> String {
    let left_out = counts.left_out - counts.contradicting;
    let fates = [
        (counts.unknown - left_out - counts.absent, "new"),
        (left_out, "left out"),
        (counts.absent, "not there to remove"),
    ];
    let fates: Vec<(u64, &str)> = fates.into_iter().filter(|(rows, _)| *rows > 0).collect();
    match fates[..] {
        [] => String::new(),
        [(_, fate)] => format!(" ({fate})"),
        _ => {
            let fates = fates.iter().map(|(rows, fate)| format!("{rows} {fate}"));
            format!(" ({})", fates.joined(", "))
        }
    }
}

/// Describes the changes of an import, or of a dry run.
fn describe(outcome: &BatchOutcome, changes: Option<&Changes>, warnings: usize) -> String {
    let mut text = String::new();
    let rows = outcome.rows.named();
    for (name, counts) in rows {
        if counts == RowCounts::default() {
            continue;
        }
        let RowCounts {
            added,
            changed,
            removed,
            unchanged,
        } = counts;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name:<14} {added:>6} added {changed:>6} changed {removed:>6} removed {unchanged:>6} unchanged"
        );
    }
    text.extend(changes.map(Changes::describe_rows));
    for effect in &outcome.licenses {
        let LicenseEffect {
            license,
            dataset,
            entering,
            changed,
            leaving,
        } = effect;
        if entering + changed + leaving > 0 {
            let _ = writeln!(
                text,
                "license `{}`, {dataset}: records entering: {entering}, changing: {changed}, leaving: {leaving}",
                Printable(license)
            );
            text.extend(changes.map(|changes| changes.describe_license(license, *dataset)));
        }
    }
    let nothing_new = rows.iter().all(|(_, counts)| counts.differing() == 0);
    let warned = match warnings {
        0 => ".".to_owned(),
        count => format!(", with {}.", counted(count, "warning")),
    };
    text.push_str(match (nothing_new, changes.is_some()) {
        (true, _) => "Nothing is new; nothing was changed",
        (false, true) => "Dry run: nothing was changed",
        (false, false) => "Committed",
    });
    text + &warned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Dataset;
    use crate::store::ImportCounts;

    #[test]
    fn an_import_prints_committed_only_if_something_is_new() {
        let none = RowCounts::default();
        let outcome = |at: usize, counts: RowCounts| {
            let mut outcome = BatchOutcome::default();
            let ImportCounts {
                datasets,
                organizations,
                tags,
            } = &mut outcome.rows;
            *[
                &mut datasets.conferences,
                &mut datasets.journals,
                organizations,
                tags,
            ][at] = counts;
            outcome
        };
        for at in 0..4 {
            for counts in [
                RowCounts { added: 1, ..none },
                RowCounts { changed: 1, ..none },
                RowCounts { removed: 1, ..none },
            ] {
                let text = describe(&outcome(at, counts), None, 0);
                assert!(text.ends_with("unchanged\nCommitted."), "{text}");
            }
            let text = describe(
                &outcome(
                    at,
                    RowCounts {
                        unchanged: 7,
                        ..none
                    },
                ),
                None,
                1,
            );
            assert!(
                text.ends_with("7 unchanged\nNothing is new; nothing was changed, with 1 warning."),
                "{text}"
            );
        }
        let mut outcome = outcome(3, RowCounts { added: 1, ..none });
        let effect = |entering, changed, leaving| LicenseEffect {
            license: "it's".to_owned(),
            dataset: Dataset::Journals,
            entering,
            changed,
            leaving,
        };
        outcome.licenses = vec![
            effect(0, 0, 0),
            effect(1, 0, 0),
            effect(0, 2, 0),
            effect(0, 0, 3),
        ];
        let expected = "tags                1 added      0 changed      0 removed      0 unchanged\n\
                        license `it's`, journals: records entering: 1, changing: 0, leaving: 0\nlicense `it's`, journals: records entering: 0, changing: 2, leaving: 0\n\
                        license `it's`, journals: records entering: 0, changing: 0, leaving: 3\nCommitted, with 2 warnings.";
        assert_eq!(describe(&outcome, None, 2), expected);
        assert_eq!(
            describe(&BatchOutcome::default(), None, 0),
            "Nothing is new; nothing was changed."
        );
    }
}
